/** Calls a function periodically. */

/** Calls never overlap. The first error goes to `onError`. */
export function repeat(body: () => Promise<void>, ms: number, onError: (error: unknown) => void): () => void {
  let isUnderWay = false
  const timer = setInterval(async () => {
    if (isUnderWay) return
    isUnderWay = true
    try {
      await body()
    } catch (error) {
      onError(error)
    } finally {
      isUnderWay = false
    }
  }, ms)
  return () => clearInterval(timer)
}
