/** Calls a scraper may forget to await: they are awaited anyway, and a failure is reported instead of ending the process. */
export class UnawaitedCalls {
  readonly #calls = new Set<{ promise: Promise<unknown>; isAwaited: boolean }>()

  /** The same call; code that awaits it, or handles its failure, takes care of it from then on. */
  watch<T>(promise: Promise<T>): Promise<T> {
    const call = { promise, isAwaited: false }
    this.#calls.add(call)
    // Kept if it failed without being awaited, and dropped otherwise: there may be millions of them.
    promise.then(
      () => this.#calls.delete(call),
      () => call.isAwaited && this.#calls.delete(call),
    )
    // Not a real promise: `await` would subscribe to one without calling our `then`.
    const then: Promise<T>['then'] = (onDone, onFailed) => {
      call.isAwaited = true
      return promise.then(onDone, onFailed)
    }
    return {
      then,
      catch: (onFailed) => then(undefined, onFailed),
      finally: (onEnd) => then().finally(onEnd),
      [Symbol.toStringTag]: 'Promise',
    }
  }

  /** Runs it now. Only a failure needs watching, so that a success has no extra cost. */
  do<T>(work: () => T): Promise<T> {
    try {
      return Promise.resolve(work())
    } catch (error) {
      return this.watch(Promise.reject<T>(error))
    }
  }

  /** Resolves when all have ended; rejects with the first failure that is not awaited. */
  async settle(): Promise<void> {
    for (const call of this.#calls) await (call.isAwaited ? call.promise.catch(() => {}) : call.promise)
  }
}
