import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { init } from "../../src/broker/init.ts"
import { inAccountOf } from "../../src/broker/tenant-streams.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { endpoint, eventually } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { messagesInEvents, publisherOf, story, withTenants, workerOn } from "../kit/tenant-story.ts"

const own = "PETREL_EVENTS_globex"

/** Changes what EVENTS copies, as the broker does that cannot copy for a while. */
const setSources = (isCopying: boolean) =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    const { config } = yield* ask("look", () => jsm.streams.info(names.events))
    kept ??= config.sources
    const sources = kept?.filter(({ name }) => isCopying || name !== own) ?? []
    yield* ask("change the sources", () => jsm.streams.update(names.events, { ...config, sources }))
  })
let kept: Array<{ name: string }> | undefined

const notCopied = Effect.map(audit({}), ({ judgement }) =>
  judgement.problems.list
    .filter(({ kind }) => kind === "event-not-copied")
    .map(({ says, stream, streamSeq, tenant }) => ({ says, stream, streamSeq, tenant }))
)

describe("the audit, of a tenant's own stream", () => {
  story("names what left it before it was copied, and nothing else", (server) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ tenant: "globex", url: hook.url })
      yield* workerOn(server)
      const { publish } = yield* publisherOf(server, "globex")
      const { publish: publishOther } = yield* publisherOf(server, "acme")
      const subject = "events.globex.a"
      yield* publish(subject, "1", "one")
      // Duplicates take no sequence, and other sources have their own.
      assert.isTrue((yield* publish(subject, "1", "one")).duplicate)
      for (const n of [1, 2, 3]) yield* publishOther("events.acme.a", `${n}`)
      yield* publish(subject, "2")
      yield* eventually(messagesInEvents, (count) => count === 5)
      assert.deepStrictEqual(yield* notCopied, [])

      // Removed once they are copied: nothing is lost.
      yield* inAccountOf("globex", (jsm) => Effect.promise(() => jsm.streams.deleteMessage(own, 2)))
      yield* setSources(false)
      yield* publish(subject, "3")
      yield* publish(subject, "4")
      yield* publish(subject, "5")
      yield* inAccountOf("globex", (jsm) =>
        Effect.promise(async () => {
          await jsm.streams.deleteMessage(own, 3)
          await jsm.streams.deleteMessage(own, 4)
        })
      )
      yield* setSources(true)
      yield* eventually(messagesInEvents, (count) => count === 6)
      yield* hook.received(3)
      const [found, ...others] = yield* notCopied
      assert.deepStrictEqual(others, [])
      assert.deepInclude(found, { tenant: "globex", stream: own, streamSeq: 3 })
      assert.match(
        found?.says ?? "",
        /^messages 3 to 4 of PETREL_EVENTS_globex are not in the event stream, which has those around, stored \S+ and \S+: /
      )
    })
  )

  story("calls nothing lost where the stream also takes other subjects", (server) =>
    Effect.gen(function* () {
      yield* workerOn(server)
      const { publish } = yield* publisherOf(server, "globex")
      const subject = "events.globex.a"
      yield* publish(subject, "1")
      yield* inAccountOf("globex", (jsm) =>
        Effect.promise(async () => {
          const { config } = await jsm.streams.info(own)
          const subject_transform = { src: "events.globex.own", dest: "orders.1" }
          await jsm.streams.update(own, { ...config, subject_transform })
        })
      )
      yield* publish("events.globex.own", "of its own")
      yield* publish(subject, "2")
      yield* eventually(messagesInEvents, (count) => count === 2)
      assert.deepStrictEqual(yield* notCopied, [])
    })
  )

  story("calls nothing lost where the stream was made again", (server) =>
    Effect.gen(function* () {
      yield* workerOn(server)
      const { publish } = yield* publisherOf(server, "globex")
      const subject = "events.globex.a"
      yield* publish(subject, "1")
      yield* eventually(messagesInEvents, (count) => count === 1)
      yield* inAccountOf("globex", (jsm) => Effect.promise(() => jsm.streams.delete(own)))
      yield* init(withTenants)
      yield* publish(subject, "3")
      yield* eventually(messagesInEvents, (count) => count === 2)
      assert.deepStrictEqual(yield* notCopied, [])
    })
  )
})
