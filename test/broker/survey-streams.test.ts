import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { lookAtStreams } from "../../src/broker/survey-streams.ts"
import { makeNames } from "../../src/domain/names.ts"
import { type AccountsServer, startWithAccounts, type User } from "../kit/nats-accounts.ts"

const { backlog, deliveries, history } = makeNames()
const [first, second] = [deliveries(0), backlog(0)]

/** Looks twice at the two streams, and at one that there is not, as a user. */
const look = (server: AccountsServer, user: User) =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const asked: Array<string> = []
    const counting = Broker.of({
      ...broker,
      streamInfo: (operation, stream, options) => {
        asked.push(stream)
        return broker.streamInfo(operation, stream, options)
      }
    })
    const looks = Effect.provideService(lookAtStreams([second, history, first]), Broker, counting)
    yield* looks
    const streams = yield* looks
    return {
      found: streams.map(({ info, name, state }) => [name, state, info?.state.messages]),
      asked
    }
  }).pipe(Effect.provide(connectTo({ url: server.url(user) })))

/** Looks as a user. Returns what was asked and found, and what the broker's log says of refusals. */
const lookAs = async (user: User) => {
  const server = await startWithAccounts()
  try {
    const jsm = await jetstreamManager(await server.as("operator"))
    await jsm.streams.add({ name: first, subjects: ["one"] })
    await jsm.streams.add({ name: second, subjects: ["two"] })
    return { ...(await Effect.runPromise(look(server, user))), violations: server.violations }
  } finally {
    // Its log is complete then.
    await server.stop()
  }
}

describe("the states of many streams", () => {
  const found = [
    [second, "led", 0],
    [history, "missing", undefined],
    [first, "led", 0]
  ]

  it("are read by one request, and only what it does not have by one of its own", async () => {
    const looked = await lookAs("console")
    assert.deepStrictEqual(looked, { found, asked: [history, history], violations: [] })
  })

  it("are read one by one by who may not ask for all, who asks for that once", async () => {
    const looked = await lookAs("worker")
    assert.deepStrictEqual(looked.found, found)
    assert.lengthOf(looked.asked, 6)
    assert.lengthOf(looked.violations, 1)
    assert.include(looked.violations[0], "$JS.API.STREAM.LIST")
  })
})
