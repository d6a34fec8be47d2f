/** Signals that tell a worker to end. */

export type Signals = ReturnType<typeof listenForSignals>

/**
 * First signal: drain. Second Ctrl-C: exit at once; nothing committed is lost. A second SIGTERM only counts if no parent forwards
 * signals: a worker of an autoscaler gets the one to the group, and the one from its parent.
 */
export function listenForSignals({ isSecondTermFinal }: { isSecondTermFinal: boolean }) {
  let reason: string | undefined
  const listeners = new Set<(reason: string) => void>()
  const stopped = Promise.withResolvers<void>()
  const onSignal = (signal: NodeJS.Signals) => {
    if (reason !== undefined && signal === 'SIGINT') process.exit(130)
    if (reason !== undefined && isSecondTermFinal) process.exit(143)
    reason = `${signal} received`
    stopped.resolve()
    for (const listener of listeners) listener(reason)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    isStopped: () => reason !== undefined,
    /** Called at once if it has already been stopped. Dispose of the returned object to unsubscribe. */
    onStop(listener: (reason: string) => void): Disposable {
      listeners.add(listener)
      if (reason !== undefined) listener(reason)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async sleep(ms: number) {
      let timer: NodeJS.Timeout | undefined
      await Promise.race([stopped.promise, new Promise((resolve) => (timer = setTimeout(resolve, ms)))])
      clearTimeout(timer)
    },
    unhook() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}
