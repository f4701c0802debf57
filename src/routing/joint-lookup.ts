import { Effect, Semaphore } from "effect"

/**
 * Makes a lookup that answers many requests by reading once. Requests that arrive while it reads
 * are answered together by its next reading: they may ask for what has been stored since.
 *
 * @param look reads for all these requests; each requester picks its own answer from the result.
 */
export const makeJointLookup = Effect.fnUntraced(function* <Request, Found, E, R>(
  look: (requests: ReadonlyArray<Request>) => Effect.Effect<Found, E, R>
) {
  const context = yield* Effect.context<R>()
  const one = yield* Semaphore.make(1)
  let next:
    | { readonly requests: Array<Request>; readonly found: Effect.Effect<Found, E> }
    | undefined

  const begin = Effect.gen(function* () {
    const requests: Array<Request> = []
    const read = Effect.suspend(() => {
      if (next === lookup) next = undefined
      return look(requests)
    })
    const found = yield* Effect.cached(Effect.provideContext(one.withPermit(read), context))
    const lookup = { requests, found }
    return lookup
  })

  return Effect.fnUntraced(function* (request: Request) {
    const lookup = next ?? (yield* begin)
    next = lookup
    lookup.requests.push(request)
    return yield* lookup.found
  })
})
