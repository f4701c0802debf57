import { Effect, Semaphore } from "effect"

/** Requests that are answered by one read. */
interface BatchedRequests<Batch, A, E> {
  readonly batch: Batch
  readonly answer: Effect.Effect<A, E>
}

/**
 * Makes a read that answers many requests: those that arrive while it runs are answered together by
 * the next one. After a suspension or a crash there may be thousands, and each read goes over the
 * same streams.
 *
 * @param empty makes a batch without requests.
 * @param read answers a batch.
 * @returns a function that adds a request to the next batch, and gives the answer to the whole batch.
 */
export const makeBatchedRead = Effect.fnUntraced(function* <Batch, A, E, R>(
  empty: () => Batch,
  read: (batch: Batch) => Effect.Effect<A, E, R>
) {
  const context = yield* Effect.context<R>()
  const one = yield* Semaphore.make(1)
  let next: BatchedRequests<Batch, A, E> | undefined

  const begin = Effect.gen(function* () {
    const batch = empty()
    const run = Effect.suspend(() => {
      if (next === requests) next = undefined
      return read(batch)
    })
    const answer = yield* Effect.cached(Effect.provideContext(one.withPermit(run), context))
    const requests: BatchedRequests<Batch, A, E> = { batch, answer }
    return requests
  })

  return (add: (batch: Batch) => void) =>
    Effect.gen(function* () {
      const requests = next ?? (yield* begin)
      next = requests
      add(requests.batch)
      return yield* requests.answer
    })
})
