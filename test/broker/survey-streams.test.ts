import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager, type PeerInfo, type StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { lookAtStreams, surveyOf } from "../../src/broker/survey-streams.ts"
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

describe("the copies of a stream", () => {
  /** What is said of the other copy, of which the leader heard some seconds ago, 0 for never. */
  const behind = (heardSeconds: number, ledForSeconds: number, changes: Partial<PeerInfo> = {}) => {
    const ts = "2026-11-30T18:11:00Z"
    const leader_since = new Date(Date.parse(ts) - ledForSeconds * 1e3).toISOString()
    const copy = { name: "n1", current: false, active: heardSeconds * 1e9, lag: 7, ...changes }
    const cluster = { leader: "n0", leader_since, replicas: [copy] }
    return surveyOf("PETREL_DEAD", { cluster, ts } as StreamInfo, false).behind
  }

  it("are behind while their server answers, and offline once it has not for a while", () => {
    assert.deepStrictEqual(behind(1, 60), [{ server: "n1", offline: false, lag: 7 }])
    assert.deepStrictEqual(behind(11, 60), [{ server: "n1", offline: true, lag: 7 }])
    assert.deepStrictEqual(behind(1, 60, { offline: true })[0]?.offline, true)
    assert.deepStrictEqual(behind(1, 60, { current: true }), [])
  })

  it("are offline, too, if the leader has never heard of them", () => {
    assert.strictEqual(behind(0, 2)[0]?.offline, false)
    assert.strictEqual(behind(0, 11)[0]?.offline, true)
  })
})
