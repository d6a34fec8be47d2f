/** Calls a scraper may forget to await: they are waited for all the same, and one that fails is reported instead of ending the process. */
export class UnawaitedCalls {
  readonly #calls = new Set<{ promise: Promise<unknown>; isAwaited: boolean }>()

  /** The same call; code that awaits it, or handles its failure, takes care of it from then on. */
  watch<T>(promise: Promise<T>): Promise<T> {
    const call = { promise, isAwaited: false }
    this.#calls.add(call)
    // Kept when it failed unheard, and forgotten otherwise: there may be millions of them.
    promise.then(
      () => this.#calls.delete(call),
      () => call.isAwaited && this.#calls.delete(call),
    )
    // Not a promise itself: `await` would listen to one without telling us.
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

  /** Does it now. Only a failure needs watching, so that what succeeds costs nothing more. */
  do<T>(work: () => T): Promise<T> {
    try {
      return Promise.resolve(work())
    } catch (error) {
      return this.watch(Promise.reject<T>(error))
    }
  }

  /** Resolves when all have ended; rejects with the first failure that nothing awaits. */
  async settle(): Promise<void> {
    for (const call of this.#calls) await (call.isAwaited ? call.promise.catch(() => {}) : call.promise)
  }
}
