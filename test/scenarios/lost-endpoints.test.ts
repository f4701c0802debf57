import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { getEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { changeSettings, readSettings } from "../../src/endpoints/settings-store.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { run } from "../cli/in-process.ts"
import { isClean } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  deadLetters,
  endpoint,
  eventually,
  history,
  publishMany,
  quickRetry,
  secret,
  startedWorker,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { scenario } = onServer()

const flagsOf = ({ eventRoot, prefix, url }: Installation): ReadonlyArray<string> => [
  ...["--nats", url],
  ...["--prefix", prefix, "--events", eventRoot]
]

const removeBucket = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  yield* ask("remove", () => jsm.streams.delete(`KV_${names.buckets.endpoints}`))
})

const noticeCodes = Effect.map(readStatus, ({ notices }) => notices.map(({ code }) => code))
const problemCodes = Effect.map(readStatus, ({ problems }) => problems.map(({ code }) => code))

describe.concurrent("a bucket of endpoints that somebody removed", () => {
  outage("holds routing back, with a line, until it is rebuilt; nothing is lost", (place, _, log) =>
    Effect.gen(function* () {
      const [whole, partly] = [yield* receiver({ answer: { status: 503 } }), yield* receiver()]
      const { origin } = new URL(whole.url)
      const retry = quickRetry({ backoff: { kind: "fixed", delay: "2 seconds" } })
      yield* endpoint({ id: "whole", url: `${origin}/`, sign: "none", secrets: [], retry })
      const url = `${new URL(partly.url).origin}/hooks/secret-path`
      const before = yield* endpoint({ id: "partly", url, headers: { authorization: "Bearer x" } })
      yield* endpoint({ id: "removed", url: `${origin}/removed` })
      yield* removeEndpoint("acme", "removed")
      yield* changeSettings("acme", (now) => Effect.succeed({ ...now, hostCap: 7 }), "test")
      const first = yield* worker()
      yield* publishMany(5)
      yield* whole.received(5)
      yield* partly.received(5)
      yield* eventually(waitingMessages, (waiting) => waiting === 5)
      yield* first.stop

      yield* removeBucket
      const init = yield* run("init", ...flagsOf(place))
      assert.include(init.out.join("\n"), "`petrel rebuild endpoints`")
      const facts = yield* history
      yield* Effect.forkScoped(startedWorker({ id: "second" }))
      yield* publishMany(5, "invoice.sent")
      yield* eventually(
        Effect.sync(() => log.count("run `petrel rebuild endpoints`")),
        (lines) => lines === 1
      )
      assert.include(yield* problemCodes, "endpoints-lost")
      const { problems } = yield* readStatus
      const texts = problems.map(({ text }) => text).join()
      assert.notInclude(texts, "no worker is running", "one waits")
      assert.include(texts, "no worker is ready")

      const dry = yield* run("rebuild", "endpoints", "--dry-run", "--json", ...flagsOf(place))
      assert.lengthOf(dry.out, 3)
      assert.isTrue(dry.out.every((line) => line.includes('"written":false')))
      const rebuilt = yield* run("rebuild", "endpoints", ...flagsOf(place))
      assert.strictEqual(rebuilt.code, 0, rebuilt.err.join())
      assert.sameMembers(
        rebuilt.out.map((line) => line.split(";")[0]),
        [
          "acme",
          "acme/whole",
          "acme/partly  paused: the history does not hold --url URL, --secret -, --header 'authorization: …'"
        ]
      )
      assert.strictEqual((yield* readSettings("acme")).settings.hostCap, 7)
      const { endpoint: after, revision } = yield* getEndpoint("acme", "partly")
      assert.strictEqual(after.generation, before.endpoint.generation)
      assert.isAbove(revision, before.revision, "no revision is given again")

      assert.include(yield* noticeCodes, "endpoint-incomplete")

      whole.answer({ status: 200 })
      yield* whole.received(15)
      const early = yield* run("endpoint", "resume", "acme/partly", ...flagsOf(place))
      assert.strictEqual(early.code, 1)
      assert.include(early.err.join("\n"), `only ${new URL(url).origin}/ is known`)
      const set = ["--url", url, "--secret", secret, "--header", "authorization: Bearer x"]
      const changed = yield* run("endpoint", "set", "acme/partly", ...set, ...flagsOf(place))
      assert.strictEqual(changed.code, 0, changed.err.join())
      yield* run("endpoint", "resume", "acme/partly", ...flagsOf(place))
      yield* partly.received(10)
      yield* facts.count("delivered", 20)
      assert.lengthOf(yield* deadLetters, 0)
      assert.notInclude(yield* problemCodes, "endpoints-lost")
      assert.notInclude(yield* noticeCodes, "endpoint-incomplete")
      yield* isClean
      const again = yield* run("rebuild", "endpoints", ...flagsOf(place))
      assert.deepStrictEqual(again.out, [])
    })
  )

  scenario("does not stop a worker that runs: it takes the rebuilt endpoints", (place) =>
    Effect.gen(function* () {
      const { names, streamInfo } = yield* Broker
      const hook = yield* receiver()
      const url = `${new URL(hook.url).origin}/`
      yield* endpoint({ url, sign: "none", secrets: [] })
      yield* worker()
      yield* publishMany(5)
      yield* hook.received(5)
      // What is made again is read from there, and comes as a copy.
      yield* eventually(
        streamInfo("look at the copies", names.configuration),
        ({ state }) => state.messages === 1
      )
      yield* removeBucket
      const { problems } = yield* readStatus
      assert.include(
        problems.map(({ text }) => text).join(),
        `KV_${names.buckets.endpoints} is missing`
      )
      yield* publishMany(5, "invoice.sent")
      yield* run("init", ...flagsOf(place))
      const rebuilt = yield* run("rebuild", "endpoints", ...flagsOf(place))
      assert.deepStrictEqual(rebuilt.out, ["acme/hook"], rebuilt.err.join("\n"))
      yield* hook.received(10)
      yield* run("endpoint", "set", "acme/hook", "--types", "order.>", ...flagsOf(place))
      yield* publishMany(5, "order.placed")
      yield* hook.received(15)
      yield* isClean
    })
  )
})
