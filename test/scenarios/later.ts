import { Clock, Effect } from "effect"

/** Runs as it would so much later, ms. */
export const later = <A, E, R>(ms: number, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const real = yield* Clock.Clock
    const now = () => real.currentTimeMillisUnsafe() + ms
    const clock: Clock.Clock = Object.create(real, {
      currentTimeMillis: { value: Effect.sync(now) },
      currentTimeMillisUnsafe: { value: now }
    })
    return yield* Effect.provideService(effect, Clock.Clock, clock)
  })
