/** Ctrl-C and SIGTERM for read-only commands: they stop, clean up, and exit with success. */

interface Stopper extends Disposable {
  readonly isStopped: boolean
  /** Resolves after `ms`, or at once when stopped. */
  sleep(ms: number): Promise<void>
}

export function createStopper(): Stopper {
  let isStopped = false
  const stopped = Promise.withResolvers<void>()
  const onSignal = () => {
    isStopped = true
    stopped.resolve()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    get isStopped() {
      return isStopped
    },
    async sleep(ms) {
      const timer = Promise.withResolvers<void>()
      const handle = setTimeout(timer.resolve, ms)
      await Promise.race([stopped.promise, timer.promise])
      clearTimeout(handle)
    },
    [Symbol.dispose]() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}
