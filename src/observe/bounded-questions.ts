/** Questions to services that may be away: none is asked twice at once, and nobody waits for them longer than so. */

/** Whoever asks while the answer is still out gets the same one. */
export function oneAtATime<T>(ask: () => Promise<T>): () => Promise<T> {
  let open: Promise<T> | undefined
  return () => {
    open ??= ask().finally(() => {
      open = undefined
    })
    return open
  }
}

/** Until all have answered or failed, at most `msMax`. A late answer is not lost: its question goes on. Never rejects. */
export async function waitForAnswers(questions: Iterable<() => Promise<unknown>>, msMax: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, msMax)
  try {
    await Promise.race([Promise.allSettled(Array.from(questions, async (ask) => await ask())), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
