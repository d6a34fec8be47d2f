/**
 * A repeating timer whose body cannot crash the process. Nothing awaits the body, so an error in it would be an
 * uncaught exception (a process that is out of file descriptors throws in the most harmless calls). The next tick tries again.
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
