/** Queries to services that may be down: none runs twice at once, and callers wait only for a limited time. */

/** Concurrent callers share the query in flight. */
export function oneAtATime<T>(ask: () => Promise<T>): () => Promise<T> {
  let open: Promise<T> | undefined
  return () => {
    open ??= ask().finally(() => {
      open = undefined
    })
    return open
  }
}

/** Waits until all have answered or failed, at most `msMax`. A late answer is not lost: its query continues. Never rejects. */
export async function waitForAnswers(questions: Iterable<() => Promise<unknown>>, msMax: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, msMax)
  try {
    await Promise.race([Promise.allSettled(Array.from(questions, async (ask) => await ask())), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
