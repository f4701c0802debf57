import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { followBucket } from "../../src/broker/bucket-follow.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { writeValue } from "../../src/broker/values.ts"
import { eventually, installation } from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { onServer, quiet } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("following a bucket", () => {
  scenario("goes on after a defect in what is made of its entries", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* writeValue(names.buckets.tokens, "a", "1")
      let tries = 0
      const make = () => {
        const heard: Array<string> = []
        // The first one stands in until the bucket is read.
        const isBroken = ++tries === 2
        return {
          heard,
          hear: (key: string) => {
            if (isBroken) throw new Error("a mistake of ours")
            heard.push(key)
          }
        }
      }
      const table = yield* followBucket({ bucket: names.buckets.tokens, lagMs: 1_000 }, make)
      assert.deepStrictEqual(table().heard, ["a"])
      assert.isAtLeast(tries, 3)
    })
  )
})

/** Users of a broker: one that may do everything, and one that may not do some of it. */
const users = (denied: string) => `authorization { users: [
  { user: all, password: pw },
  { user: less, password: pw, permissions: { ${denied} } }
] }`

/** Follows the tokens as a user from whom something is taken away. Returns what is said of the bucket. */
const following = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startServer({ config: users("") })),
    (one) => Effect.promise(() => one.stop())
  )
  const at = (user: string) => ({ ...server, url: `nats://${user}:pw@127.0.0.1:${server.port}` })
  const place = installation(at("all"))
  const said: Array<boolean> = []
  const follow = Effect.gen(function* () {
    const { names } = yield* Broker
    const options = { lagMs: 100, shown: (isShown: boolean) => said.push(isShown) }
    yield* followBucket({ bucket: names.buckets.tokens, ...options }, () => ({ hear: () => {} }))
  })
  const { eventRoot, prefix } = place
  const less = Layer.build(connectTo({ ...at("less"), prefix, eventRoot }))
  const asLess = Effect.map(less, Context.get(Broker))
  return { server, place, said, follow: Effect.provideServiceEffect(follow, Broker, asLess) }
})

describe("a bucket that is followed", () => {
  for (const [what, denied] of [
    ["receive", `subscribe: { deny: "_INBOX.>" }`],
    ["ask for messages", `publish: { deny: "$JS.API.CONSUMER.MSG.NEXT.>" }`],
    ["look at the stream", `publish: { deny: "$JS.API.STREAM.INFO.>" }`]
  ] as const)
    it.live(`is not shown while its user may not ${what}, and is again`, () =>
      Effect.gen(function* () {
        const { follow, place, said, server } = yield* following
        const now = Effect.sync(() => said.splice(0))
        yield* place.run(
          Effect.gen(function* () {
            const { names } = yield* Broker
            yield* follow
            yield* Effect.promise(() => server.reloadWith(users(denied)))
            // A request of before the reload may still bring the next value, but not all that follow.
            const after = Effect.andThen(writeValue(names.buckets.tokens, "a", "1"), now)
            yield* eventually(after, (all) => all.includes(false) && !all.includes(true), 1_000)
            yield* Effect.promise(() => server.reloadWith(users("")))
            yield* eventually(now, (all) => all.includes(true) && !all.includes(false), 1_000)
          })
        )
      }).pipe(Effect.scoped, Effect.provide(quiet))
    )

  it.live("is not called refused while the broker is away", () =>
    Effect.gen(function* () {
      const { follow, place, said, server } = yield* following
      yield* place.run(
        Effect.gen(function* () {
          yield* follow
          yield* Effect.promise(() => server.kill9())
          yield* Effect.promise(() => server.restart())
          said.length = 0
          yield* eventually(
            Effect.sync(() => said),
            (all) => all.includes(true)
          )
          assert.notInclude(said, false)
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
