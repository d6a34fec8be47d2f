/** A call that is made again and again. */

/** One call after the other, never two at once. What it throws goes to `onError`, once. */
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
