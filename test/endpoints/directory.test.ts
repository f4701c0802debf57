import { assert, describe } from "@effect/vitest"
import type { KvWatchEntry } from "@nats-io/kv"
import { Context, Effect, Layer, Schema } from "effect"
import type { Watch } from "../../src/broker/broker.ts"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Delivery } from "../../src/domain/delivery.ts"
import { untried } from "../../src/domain/delivery.ts"
import { TypeFilter } from "../../src/domain/type-filter.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import { disableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import type { StoredEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { endpoint, eventually } from "../kit/engine.ts"
import { change, readByHand, writeByHand } from "../kit/live-endpoints.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A delivery to an endpoint as routing saw it. */
const deliveryTo = ({ endpoint, revision }: StoredEndpoint): Delivery => ({
  tenant: endpoint.tenant,
  endpoint: endpoint.id,
  event: "e",
  eventSeq: 1,
  eventAt: 0,
  type: "a",
  round: "0",
  began: 0,
  deadline: 0,
  generation: endpoint.generation,
  revision,
  content: {},
  progress: untried
})

const openDirectory = Effect.map(Layer.build(Directory.layer), Context.get(Directory))

/** What a watch yields, up to the end of what was there when it began; then `after` decides. */
const upToNow = (watch: Watch, after: () => Promise<void>) => {
  const entries = async function* (): AsyncGenerator<KvWatchEntry> {
    for await (const entry of watch) {
      yield entry
      if (entry.delta === 0) await after()
    }
  }
  return Object.assign(entries(), { stop: () => watch.stop() })
}

/** A broker whose watches of buckets go through `alter`, and which reconnects when it is told to. */
const altered = (alter: (watch: Watch) => AsyncIterable<KvWatchEntry> & { stop: () => void }) =>
  Effect.gen(function* () {
    const listeners = new Set<() => void>()
    const service = yield* alteredBroker((broker) => ({
      watch: (name) => Effect.map(broker.watch(name), alter),
      onReconnect: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      }
    }))
    return {
      service,
      reconnect: () => {
        for (const listener of listeners) listener()
      }
    }
  })

const never = () => new Promise<void>(() => {})

/** What happens to the entries of a watch: each is shown when its promise is kept, with this to come after it. */
type Showing = (entry: KvWatchEntry) => {
  readonly when: Promise<void>
  readonly delta: number | undefined
}

/** What a watch yields, as a copy of the stream would show it that has not everything yet. */
const shownBy = (watch: Watch, show: Showing) => {
  const entries = async function* (): AsyncGenerator<KvWatchEntry> {
    for await (const entry of watch) {
      const { delta, when } = show(entry)
      await when
      yield Object.create(entry, { delta: { value: delta } })
    }
  }
  return Object.assign(entries(), { stop: () => watch.stop() })
}

const promised = () => {
  let keep = () => {}
  const when = new Promise<void>((resolve) => {
    keep = resolve
  })
  return { when, keep }
}

/** What a watch yields, with a key left out: as a copy would show it that has a gap. */
const without = (watch: Watch, key: string) => {
  const entries = async function* (): AsyncGenerator<KvWatchEntry> {
    for await (const entry of watch) if (entry.key !== key) yield entry
  }
  return Object.assign(entries(), { stop: () => watch.stop() })
}

/** What a watch yields; `done` is told when its reader is through with an entry. */
const followed = (watch: Watch, done: (entry: KvWatchEntry) => void) => {
  const entries = async function* (): AsyncGenerator<KvWatchEntry> {
    for await (const entry of watch) {
      yield entry
      done(entry)
    }
  }
  return Object.assign(entries(), { stop: () => watch.stop() })
}

/** What a watch yields, each after an older value of its key: as a copy would show it that lags. */
const preceded = (
  watch: Watch,
  { revision, text }: { readonly revision: number; readonly text: string }
) => {
  const entries = async function* (): AsyncGenerator<KvWatchEntry> {
    for await (const entry of watch) {
      yield Object.create(entry, {
        revision: { value: revision },
        delta: { value: 1 },
        string: { value: () => text }
      })
      yield entry
    }
  }
  return Object.assign(entries(), { stop: () => watch.stop() })
}

/** Waits until the leader has answered so many further requests about the endpoints' bucket. */
const answered = Effect.fnUntraced(function* ({ listen, names }: Broker["Service"], count: number) {
  let asked = 0
  const stream = `KV_${names.buckets.endpoints}`
  const unlisten = listen(`$JS.API.STREAM.*.${stream}`, () => void asked++)
  yield* eventually(
    Effect.sync(() => asked),
    (times) => times >= count
  )
  unlisten()
})

const maxInFlight = (id: string, count: number) => change(id, { maxInFlight: count })

const types = Schema.decodeUnknownSync(Schema.NonEmptyArray(TypeFilter))

describe.concurrent("the directory", () => {
  scenario("finds who wants an event, in the order of their ids, disabled ones included", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "b", types: ["invoice.>"] })
      yield* endpoint({ id: "a", types: ["*.paid", "invoice.paid"] })
      yield* endpoint({ id: "c", types: ["order.*"] })
      yield* endpoint({ tenant: "other", id: "a" })
      yield* disableEndpoint({ tenant: "acme", endpoint: "b" }, "asked to", "cli")
      const directory = yield* openDirectory
      const ids = (type: string) => directory.match("acme", type).map(({ id }) => id)
      assert.deepStrictEqual(ids("invoice.paid"), ["a", "b"])
      assert.deepStrictEqual(ids("order.paid"), ["a", "c"])
      assert.deepStrictEqual(ids("order"), [])
      assert.deepStrictEqual(directory.match("nobody", "invoice.paid"), [])
      yield* changeEndpoint("acme", "a", (found) =>
        Effect.succeed({ ...found, types: types(["order"]) })
      )
      yield* removeEndpoint("acme", "c")
      yield* eventually(
        Effect.sync(() => [ids("invoice.paid"), ids("order"), ids("order.paid")]),
        (found) => JSON.stringify(found) === '[["b"],["a"],[]]'
      )
    })
  )

  scenario("asks the leader about what it has not seen yet, before it judges", () =>
    Effect.gen(function* () {
      const known = yield* endpoint({ id: "known" })
      const replaced = yield* endpoint({ id: "replaced" })
      const removed = yield* endpoint({ id: "removed" })
      const { service } = yield* altered((watch) => upToNow(watch, never))
      const directory = yield* Effect.provideService(openDirectory, Broker, service)

      const unseen = yield* endpoint({ id: "unseen" })
      const changed = yield* changeEndpoint("acme", "known", (found) =>
        Effect.succeed({ ...found, maxInFlight: 77 })
      )
      yield* removeEndpoint("acme", "replaced")
      const successor = yield* endpoint({ id: "replaced" })
      const last = yield* changeEndpoint("acme", "removed", (found) =>
        Effect.succeed({ ...found, maxInFlight: 77 })
      )
      yield* removeEndpoint("acme", "removed")
      const off = yield* endpoint({ id: "off" })
      yield* disableEndpoint({ tenant: "acme", endpoint: "off" }, "asked to", "cli")

      const standing = (stored: StoredEndpoint) =>
        Effect.map(directory.standing(deliveryTo(stored)), (found) =>
          found._tag === "Removed"
            ? "Removed"
            : `${found._tag} ${found.endpoint.config.maxInFlight}`
        )
      assert.isUndefined(directory.find("acme.unseen"))
      assert.strictEqual(yield* standing(unseen), "Live 10")
      assert.strictEqual(yield* standing(known), "Live 10")
      assert.strictEqual(yield* standing(changed), "Live 77")
      assert.strictEqual(yield* standing(successor), "Live 10")
      assert.strictEqual(yield* standing({ ...successor, endpoint: replaced.endpoint }), "Removed")
      assert.strictEqual(yield* standing(last), "Removed")
      assert.strictEqual(yield* standing({ ...removed, revision: last.revision + 1 }), "Removed")
      assert.strictEqual(yield* standing(off), "Disabled 10")
    })
  )

  scenario("tells of endpoints that take nothing any more, and of no others", () =>
    Effect.gen(function* () {
      for (const id of ["removed", "disabled", "replaced", "changed"]) yield* endpoint({ id })
      const directory = yield* openDirectory
      const told: Array<string> = []
      const stop = directory.onUnavailable((tenant, id) => told.push(`${tenant}/${id}`))
      yield* removeEndpoint("acme", "removed")
      yield* disableEndpoint({ tenant: "acme", endpoint: "disabled" }, "asked to", "cli")
      yield* changeEndpoint("acme", "changed", (found) =>
        Effect.succeed({ ...found, maxInFlight: 3 })
      )
      yield* changeEndpoint("acme", "replaced", (found) =>
        Effect.succeed({ ...found, generation: "another" })
      )
      yield* endpoint({ id: "last" })
      yield* eventually(
        Effect.sync(() => directory.find("acme.last")),
        (found) => found !== undefined
      )
      assert.deepStrictEqual(told, ["acme/removed", "acme/disabled", "acme/replaced"])
      stop()
      yield* removeEndpoint("acme", "last")
      yield* eventually(
        Effect.sync(() => directory.find("acme.last")),
        (found) => found === undefined
      )
      assert.strictEqual(told.length, 3)
    })
  )

  scenario("reads everything again after a reconnect, for a watch may have missed something", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* endpoint({ id: "vanishes" })
      yield* endpoint({ id: "changes" })
      yield* writeByHand("acme.garbled", '{"v":2}')
      const { reconnect, service } = yield* altered((watch) => upToNow(watch, never))
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      const told: Array<string> = []
      directory.onUnavailable((_, id) => told.push(id))
      const bucket = names.buckets.endpoints
      for (const id of ["vanishes", "garbled"])
        yield* ask("purge", () =>
          jsm.streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.acme.${id}` })
        )
      yield* changeEndpoint("acme", "changes", (found) =>
        Effect.succeed({ ...found, maxInFlight: 77 })
      )
      yield* endpoint({ id: "comes" })
      assert.strictEqual(directory.find("acme.changes")?.config.maxInFlight, 10)
      assert.deepStrictEqual(directory.unreadable("acme"), ["garbled"])
      reconnect()
      yield* eventually(
        Effect.sync(() => directory.find("acme.comes")),
        (found) => found !== undefined
      )
      yield* eventually(
        Effect.sync(() => directory.find("acme.vanishes")),
        (found) => found === undefined
      )
      assert.strictEqual(directory.find("acme.changes")?.config.maxInFlight, 77)
      assert.sameMembers(told, ["vanishes", "garbled"])
      assert.deepStrictEqual(directory.unreadable("acme"), [])
    })
  )

  scenario("watches again when its watch has failed", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "first" })
      let watches = 0
      const { service } = yield* altered((watch) =>
        watches++ === 0
          ? upToNow(watch, () => Promise.reject(new Error("heartbeats missed")))
          : watch
      )
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      yield* endpoint({ id: "second" })
      yield* eventually(
        Effect.sync(() => directory.find("acme.second")),
        (found) => found !== undefined
      )
    })
  )

  scenario("does not take for removed what a copy does not have yet, nor plans meanwhile", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "early" })
      const { revision } = yield* endpoint({ id: "seen" })
      yield* endpoint({ id: "late" })
      const copy = promised()
      let watches = 0
      const { reconnect, service } = yield* altered((watch) =>
        watches++ === 0
          ? watch
          : shownBy(watch, (entry) =>
              entry.revision > revision
                ? { when: copy.when, delta: entry.delta }
                : { when: Promise.resolve(), delta: entry.revision < revision ? 1 : 0 }
            )
      )
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      const told: Array<string> = []
      directory.onUnavailable((_, id) => told.push(id))
      assert.isTrue(directory.isCurrent())
      yield* endpoint({ id: "meanwhile" })
      reconnect()
      assert.isFalse(directory.isCurrent())
      yield* eventually(
        Effect.sync(() => watches),
        (count) => count === 2
      )
      yield* changeEndpoint("acme", "early", (found) =>
        Effect.succeed({ ...found, maxInFlight: 77 })
      )
      // It is asked for at the leader again and again: by then the old reading would have ended.
      yield* answered(service, 3)
      assert.isFalse(directory.isCurrent())
      assert.isDefined(directory.find("acme.late"))
      copy.keep()
      yield* directory.current
      assert.isTrue(directory.isCurrent())
      assert.isDefined(directory.find("acme.meanwhile"))
      assert.deepStrictEqual(told, [])
    })
  )

  scenario("asks the leader for what a complete reading has not shown", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "skipped" })
      yield* endpoint({ id: "gone" })
      yield* endpoint({ id: "last" })
      let watches = 0
      const { reconnect, service } = yield* altered((watch) =>
        watches++ === 0 ? upToNow(watch, never) : without(watch, "acme.skipped")
      )
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      const told: Array<string> = []
      directory.onUnavailable((_, id) => told.push(id))
      yield* changeEndpoint("acme", "skipped", (found) =>
        Effect.succeed({ ...found, maxInFlight: 77 })
      )
      yield* removeEndpoint("acme", "gone")
      yield* endpoint({ id: "next" })
      reconnect()
      yield* directory.current
      assert.strictEqual(directory.find("acme.skipped")?.config.maxInFlight, 77)
      assert.isUndefined(directory.find("acme.gone"))
      assert.deepStrictEqual(told, ["gone"])
    })
  )

  scenario("tells of no removal twice, however many there were", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      yield* endpoint({ id: "hook" })
      const remove = (id: number) =>
        publisher.publish(`$KV.${names.buckets.endpoints}.acme.gone-${id}`, "", [
          ["KV-Operation", "DEL"]
        ])
      const ids = Array.from({ length: 10_500 }, (_, id) => id)
      yield* Effect.forEach(ids, remove, { concurrency: 256, discard: true })
      const { reconnect, service } = yield* altered((watch) => watch)
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      const told: Array<string> = []
      directory.onUnavailable((_, id) => told.push(id))
      reconnect()
      yield* directory.current
      assert.deepStrictEqual(told, [])
      yield* removeEndpoint("acme", "hook")
      yield* eventually(
        Effect.sync(() => told),
        (all) => all.length > 0
      )
      assert.deepStrictEqual(told, ["hook"])
    })
  )

  scenario("goes back to an older configuration only where the leader has it", () =>
    Effect.gen(function* () {
      const { revision } = yield* endpoint({ id: "hook" })
      const text = yield* readByHand("acme.hook")
      let watches = 0
      const { reconnect, service } = yield* altered((watch) =>
        watches++ === 0 ? watch : preceded(watch, { revision, text })
      )
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      yield* changeEndpoint("acme", "hook", (found) =>
        Effect.succeed({ ...found, maxInFlight: 77 })
      )
      yield* eventually(
        Effect.sync(() => directory.find("acme.hook")?.config.maxInFlight),
        (count) => count === 77
      )
      const before = directory.version()
      reconnect()
      yield* directory.current
      assert.strictEqual(watches, 2)
      assert.strictEqual(directory.version(), before)
      assert.strictEqual(directory.find("acme.hook")?.config.maxInFlight, 77)
    })
  )

  scenario("takes what a bucket gives its revisions to that has lost its end", () =>
    Effect.gen(function* () {
      const { ask, bucket, jsm, names } = yield* natsClients
      yield* endpoint({ id: "hook" })
      const text = yield* readByHand("acme.hook")
      const lost = yield* maxInFlight("hook", 2)
      yield* endpoint({ id: "lost" })
      let watches = 0
      let shown = 0
      const { reconnect, service } = yield* altered((watch) =>
        watches++ === 0
          ? upToNow(watch, never)
          : followed(watch, ({ key }) => {
              if (key === "acme.hook") shown++
            })
      )
      // While the leader says that it has the first revision, it is given the second one, again.
      let asked = 0
      const meddling: typeof service.readMessage = (operation, ...rest) =>
        operation !== "read acme.hook" || asked++ > 0
          ? service.readMessage(operation, ...rest)
          : Effect.gen(function* () {
              const answer = yield* service.readMessage(operation, ...rest)
              const before = shown
              const again = yield* Effect.orDie(maxInFlight("hook", 3))
              assert.strictEqual(again.revision, lost.revision)
              yield* eventually(
                Effect.sync(() => shown),
                (count) => count > before
              )
              return answer
            }).pipe(Effect.provide(context))
      const context = yield* Effect.context<Broker>()
      const directory = yield* Effect.provideService(openDirectory, Broker, {
        ...service,
        readMessage: meddling
      })
      const told: Array<string> = []
      directory.onUnavailable((_, id) => told.push(id))
      const stream = `KV_${names.buckets.endpoints}`
      const { config } = yield* ask("look", () => jsm.streams.info(stream))
      yield* ask("lose all", () => jsm.streams.delete(stream))
      yield* ask("begin anew", () => jsm.streams.add(config))
      const kv = yield* bucket(names.buckets.endpoints)
      yield* ask("put", () => kv.put("acme.hook", text))
      reconnect()
      yield* directory.current
      assert.isAbove(asked, 0)
      assert.strictEqual(directory.find("acme.hook")?.config.maxInFlight, 3)
      assert.isUndefined(directory.find("acme.lost"))
      assert.deepStrictEqual(told, ["lost"])
    })
  )

  scenario("is current again after a reconnect, though the last that was stored was purged", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* endpoint({ id: "stays" })
      yield* endpoint({ id: "purged" })
      const { reconnect, service } = yield* altered((watch) => watch)
      const directory = yield* Effect.provideService(openDirectory, Broker, service)
      const bucket = names.buckets.endpoints
      for (const id of ["purged", "stays"]) {
        yield* ask("purge", () =>
          jsm.streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.acme.${id}` })
        )
        reconnect()
        yield* directory.current
        assert.isUndefined(directory.find(`acme.${id}`))
      }
    })
  )

  scenario(
    "is not current while its watch shows nothing of what the leader has, and reads anew",
    () =>
      Effect.gen(function* () {
        yield* endpoint({ id: "first" })
        let watches = 0
        const { service } = yield* altered((watch) =>
          watches++ === 0 ? upToNow(watch, never) : watch
        )
        const directory = yield* Effect.provideService(openDirectory, Broker, service)
        const added = performance.now()
        yield* endpoint({ id: "second" })
        const states = new Set<string>()
        yield* eventually(
          Effect.sync(() => {
            const isKnown = directory.find("acme.second") !== undefined
            states.add(`${directory.isCurrent() ? "current" : "waits"}, ${isKnown}`)
            return isKnown && directory.isCurrent()
          }),
          (done) => done
        )
        assert.isBelow(performance.now() - added, 10_000)
        assert.isTrue(states.has("waits, false"))
      })
  )
})

describe("the directory of a broker that does not answer", () => {
  outage("is not current, and is again when it answers", (_, server) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "first" })
      const directory = yield* openDirectory
      const before = performance.now()
      server.pause()
      yield* eventually(Effect.sync(directory.isCurrent), (current) => !current)
      assert.isBelow(performance.now() - before, 10_000)
      server.resume()
      yield* directory.current
      yield* endpoint({ id: "second" })
      yield* eventually(
        Effect.sync(() => directory.find("acme.second")),
        (found) => found !== undefined
      )
    })
  )
})
