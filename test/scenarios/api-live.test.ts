import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { maxMissed } from "../../src/operations/history/live-failures.ts"
import type { TestConsole } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import { store } from "../kit/delivery-log.ts"
import { endpoint, eventually, history, installation, publish, worker } from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage, quiet } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A server-sent event; without a name for one that only has an id. */
interface Heard {
  readonly name: string | undefined
  readonly id: string | undefined
  readonly data: Record<string, unknown>
}

const heardIn = (block: string): ReadonlyArray<Heard> => {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]
  const [name, id] = [field("event"), field("id")]
  if (name === undefined && id === undefined) return []
  return [{ name, id, data: JSON.parse(field("data") ?? "{}") }]
}

/** Follows failures until the scope closes. */
const following = Effect.fnUntraced(function* (
  { url }: Pick<TestConsole, "url">,
  token: string,
  lastId?: string
) {
  const controller = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller) => Effect.sync(() => controller.abort())
  )
  const response = yield* Effect.promise(() =>
    fetch(`${url}/v1/tenants/acme/live`, {
      signal: controller.signal,
      headers: {
        authorization: `Bearer ${token}`,
        ...(lastId === undefined ? {} : { "last-event-id": lastId })
      }
    })
  )
  const heard: Array<Heard> = []
  const read = async () => {
    let text = ""
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      const blocks = (text + decoder.decode(chunk, { stream: true })).split("\n\n")
      text = blocks.pop() ?? ""
      heard.push(...blocks.flatMap(heardIn))
    }
  }
  let hasEnded = false
  const ended = () => {
    hasEnded = true
  }
  if (response.ok) read().then(ended, ended)
  const until = (holds: () => boolean) => eventually(Effect.sync(holds), (holds) => holds)
  const failures = () =>
    heard.filter(({ data, name }) => {
      if (name === "failure") assert.match(String(data.at), /^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/)
      return name === "failure"
    })
  const { headers, status } = response
  return { headers, status, heard, failures, hasEnded: () => hasEnded, until }
})

const failure: Fact = {
  ...{ v: 1, kind: "attempt-failed", at: 1, tenant: "acme", endpoint: "e", worker: "w" },
  ...{ event: "acme.x", eventSeq: 1, eventAt: 1, type: "a", round: "0", attempt: 1, status: 500 }
}
const made = (count: number) => Array.from({ length: count }, () => failure)

describe.concurrent("failures over HTTP", () => {
  scenario("are refused after an id that is none of them", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const headers = { "last-event-id": "abc" }
      const { json, status } = yield* ask("/v1/tenants/acme/live", {
        token: yield* make(),
        headers
      })
      assert.strictEqual(status, 400)
      const message = "must be the id of an event of this stream, such as 4711"
      assert.deepStrictEqual(json.errors, [{ field: "last-event-id", message }])
    })
  )

  scenario("are not kept back by an nginx in front, which buffers answers by itself", () =>
    Effect.gen(function* () {
      const console = yield* startConsole()
      const { headers } = yield* following(console, yield* console.token())
      assert.strictEqual(headers.get("x-accel-buffering"), "no")
    })
  )

  scenario("are sent to a client that comes back, from where it was, each once", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker()
      const console = yield* startConsole()
      const token = yield* console.token()
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* following(console, token)
          yield* first.until(() => first.heard.length === 1)
          yield* publish("a", "1")
          yield* first.until(() => first.failures().length === 2)
          return first.heard.at(-1)?.id
        })
      )
      yield* publish("a", "2")
      yield* facts.count("dead-lettered", 2)
      const second = yield* following(console, token, id)
      yield* second.until(() => second.failures().length === 2)
      yield* publish("a", "3")
      yield* second.until(() => second.failures().length === 4)
      const seqs = second.failures().map(({ id }) => Number(id))
      assert.deepStrictEqual(
        [...new Set(seqs)].toSorted((a, b) => a - b),
        seqs
      )
      assert.isTrue(seqs.every((seq) => seq > Number(id)))
      const kinds = second.failures().map(({ data }) => data.kind)
      const each = ["attempt-failed", "dead-lettered"]
      assert.deepStrictEqual(kinds, [...each, ...each])
      assert.isEmpty(second.heard.filter(({ name }) => name === "dropped"))
      // A client that has got nothing yet knows where it was, too.
      const none = yield* following(console, token)
      yield* none.until(() => none.heard.length === 1)
      assert.deepStrictEqual(none.heard[0], { name: undefined, id: String(seqs.at(-1)), data: {} })
      for (const odd of ["-1", "x", "1.5"])
        assert.strictEqual((yield* following(console, token, odd)).status, 400, odd)
    })
  )

  outage("end where some may have been missed, and are sent to who comes back", (_, server) =>
    Effect.gen(function* () {
      const console = yield* startConsole()
      const token = yield* console.token()
      const first = yield* following(console, token)
      yield* first.until(() => first.heard.length === 1)
      yield* store(made(1))
      yield* first.until(() => first.failures().length === 1)
      yield* Effect.promise(() => server.restart())
      yield* store(made(1))
      yield* first.until(first.hasEnded)
      const second = yield* eventually(
        following(console, token, first.heard.at(-1)?.id),
        ({ status }) => status === 200
      )
      yield* second.until(() => second.heard.some(({ name }) => name === undefined))
      const { names, streamInfo } = yield* Broker
      const { state } = yield* streamInfo("look", names.history)
      // The first fact is that of the token.
      assert.strictEqual(state.last_seq, 3)
      const all = [...first.failures(), ...second.failures()].map(({ id }) => Number(id))
      assert.deepStrictEqual(all, [2, 3])
    })
  )

  outage(
    "end where the broker stays away, as a stream without an end says that it follows",
    (_, server) =>
      Effect.gen(function* () {
        const console = yield* startConsole()
        const stream = yield* following(console, yield* console.token())
        yield* stream.until(() => stream.heard.length === 1)
        yield* Effect.promise(() => server.kill9())
        yield* stream.until(stream.hasEnded)
        yield* Effect.promise(() => server.restart())
      })
  )

  scenario("say what a client has missed that it does not get", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const console = yield* startConsole()
      const token = yield* console.token()
      yield* store(made(maxMissed + 50), 32)
      // The first fact is that of the token.
      const last = maxMissed + 51
      const all = yield* following(console, token, "10")
      yield* all.until(() => all.heard.at(-1)?.name === undefined && all.heard.length > 1)
      const sent = all.failures().map(({ id }) => Number(id))
      assert.deepStrictEqual([sent.length, sent[0], sent.at(-1)], [maxMissed, 11, maxMissed + 10])
      const gap = all.heard.find(({ name }) => name === "dropped")
      assert.deepInclude(gap?.data, { dropped: 41, after: maxMissed + 10, until: last })
      assert.strictEqual(all.heard.at(-1)?.id, String(last))

      const { ask, jsm } = yield* natsClients
      yield* ask("remove facts", () => jsm.streams.update(names.history, { max_msgs: 52 }))
      const late = yield* following(console, token, "10")
      yield* late.until(() => late.failures().length === 52)
      assert.deepInclude(late.heard[0]?.data, { dropped: null, after: 10 })
      const other = yield* following(console, token, "1000000")
      yield* other.until(() => other.heard.length === 2)
      assert.deepInclude(other.heard[0]?.data, { dropped: null, after: 1_000_000 })
      assert.include(String(other.heard[0]?.data.why), "another one")
    })
  )

  it.live("are said to be left out while the broker lets the console receive none", () =>
    Effect.gen(function* () {
      const users = (denied: string) => `authorization { users: [
        { user: all, password: pw },
        { user: console, password: pw, permissions: { subscribe: { deny: "${denied}" } } }
      ] }`
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: users("nothing") })),
        (one) => Effect.promise(() => one.stop())
      )
      const as = (user: string) => server.url.replace("//", `//${user}:pw@`)
      const place = installation({ ...server, url: as("all") })
      yield* place.run(
        Effect.gen(function* () {
          const limited = connectTo({ ...place, url: as("console") })
          const console = yield* Effect.provide(startConsole(), yield* Layer.build(limited))
          const token = yield* console.token()
          const first = yield* following(console, token)
          yield* first.until(() => first.heard.length > 0)

          const { names } = yield* Broker
          const failures = names.subjects.failures("*", "*", "*")
          yield* Effect.promise(() => server.reloadWith(users(failures)))
          yield* first.until(() => first.heard.at(-1)?.name === "dropped")
          assert.deepInclude(first.heard.at(-1)?.data, { dropped: null })
          const meanwhile = yield* following(console, token)
          yield* meanwhile.until(() => meanwhile.heard.at(-1)?.name === "dropped")
          yield* store(made(3), 32)

          yield* Effect.promise(() => server.reloadWith(users("nothing")))
          for (const one of [first, meanwhile]) {
            yield* one.until(one.hasEnded)
            const id = one.heard.findLast(({ id }) => id !== undefined)?.id
            const next = yield* following(console, token, id)
            yield* next.until(() => next.failures().length === 3)
          }
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
