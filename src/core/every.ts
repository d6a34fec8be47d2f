/**
 * A repeating timer whose body cannot end the process: nobody waits for it, so what it throws, at once or later, would be an
 * uncaught exception (a process out of file descriptors throws in the most harmless calls). The next turn tries again.
 */
export function every(body: () => unknown, ms: number, onError: (error: unknown) => void = () => {}): NodeJS.Timeout {
  return setInterval(async () => {
    try {
      await body()
    } catch (error) {
      onError(error)
    }
  }, ms)
}
