import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import type { Facts } from "../../src/history/facts.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { startConsole } from "../kit/console.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, eventually, history, installation, publish, worker } from "../kit/engine.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { canMount, freePort, startCluster, startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 120_000 })

const diskBytes = 32 * 1024 ** 2

/** A story on a broker whose store is on a disk of its own. */
const story = (
  name: string,
  tell: (
    server: TestServer,
    place: Installation
  ) => Effect.Effect<void, unknown, Broker | Facts | Scope.Scope>
) =>
  it.live.skipIf(!canMount())(name, () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ diskBytes })),
        (started) => Effect.promise(() => started.stop())
      )
      const place = installation(server)
      yield* place.run(tell(server, place))
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

/** What is read here of a status. */
interface Said {
  readonly problems?: ReadonlyArray<{ readonly code: string }>
  readonly broker?: { readonly health: ReadonlyArray<{ readonly ok: boolean | null }> }
}

/**
 * `petrel status --check`: its exit code, the codes of the problems, and what it says of them. It
 * may have no status where a broker is only just there again.
 */
const checked = ({ eventRoot, prefix, url }: Installation, ...flags: ReadonlyArray<string>) =>
  Effect.map(
    run(
      ...["status", "--check", "--json", "--nats", url],
      ...["--prefix", prefix, "--events", eventRoot, ...flags]
    ),
    ({ code, err, out }) => {
      const { broker, problems = [] }: Said = out[0] === undefined ? {} : parse(out[0])
      return {
        code,
        codes: problems.map((problem) => problem.code),
        health: (broker?.health ?? []).map(({ ok }) => ok),
        said: err.join("\n")
      }
    }
  )

/** Publishes until the broker answers no more. */
const flood = Effect.gen(function* () {
  const body = "x".repeat(400_000)
  while (true) {
    const failure = yield* Effect.match(publish("a", body), {
      onFailure: ({ message }) => message,
      onSuccess: () => undefined
    })
    if (failure !== undefined) return failure
  }
})

describe("a disk that is full", () => {
  story("is a problem, and the broker has to be restarted", (server, place) =>
    Effect.gen(function* () {
      const monitor = `127.0.0.1:${yield* Effect.promise(freePort)}`
      yield* Effect.promise(() => server.restartWith(`http: "${monitor}"`))
      const withHealth = checked(place, "--nats-monitor", `http://${monitor},http://127.0.0.1:1`)
      const before = yield* eventually(withHealth, ({ health }) => health.length === 2)
      assert.deepStrictEqual(before.health, [true, null])
      // The connection is on its way back.
      yield* Effect.eventually(publish("a"))
      const { deleteMessage, names, publish: store } = yield* Broker
      assert.notInclude((yield* checked(place)).codes, "disk-failed")
      assert.match(yield* flood, /timeout/)
      const refused = yield* Effect.flip(store(`${place.eventRoot}.acme.a`, "{}", []))
      assert.match(refused.message, /no acknowledgement .* whether the broker's disk is full/)
      const kept = yield* Effect.flip(deleteMessage("remove", names.events, 1))
      assert.match(kept.message, /no space left on device/)
      const { code, codes, said } = yield* checked(place)
      assert.strictEqual(code, 1)
      assert.include(codes, "disk-failed")
      const unwell = yield* withHealth
      assert.include(unwell.codes, "broker-unhealthy")
      assert.deepStrictEqual(unwell.health, [false, null])
      assert.match(
        said,
        new RegExp(
          `stores nothing more for ${names.events} \\(no space left on device\\).* restart the broker`
        )
      )
    })
  )

  story("is one where only buckets or the history stand, until the restart", (server, place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const { problems } = yield* worker()
      const { ask, token } = yield* startConsole()
      const operator = yield* token({ scopes: ["operator"], tenant: "*" })
      assert.strictEqual((yield* checked(place)).code, 0)
      server.fillDisk()
      // Nobody publishes: the workers' heartbeats are what is not stored. In one of some thirty runs
      // the server answers nothing about its streams then, until it is killed.
      const hangs = /does not answer requests about its streams.* disk was full/
      const { codes, said } = yield* eventually(
        checked(place),
        (status) => status.codes.includes("disk-failed") || hangs.test(status.said)
      )
      if (codes.includes("disk-failed")) {
        assert.match(said, /acknowledged no message for KV_\S+: .* restart the broker/)
        assert.match(
          problems().join(),
          /the broker acknowledges nothing that is to be stored in KV_/
        )
        const { json } = yield* ask("/v1/status", { token: operator })
        const told = json.problems as ReadonlyArray<{ readonly code: string }>
        assert.include(
          told.map(({ code }) => code),
          "disk-failed"
        )
        yield* eventually(ask("/metrics"), ({ text }) =>
          text.includes('petrel_problems{code="disk-failed"} 1\n')
        )
        server.emptyDisk()
        assert.include((yield* checked(place)).codes, "disk-failed")
      } else server.emptyDisk()
      yield* Effect.promise(() => server.restart())
      yield* eventually(checked(place), ({ code }) => code === 0)
      // The connection may still be on its way back.
      yield* Effect.eventually(publish("a"))
      yield* hook.received(1)
    })
  )

  story("is an alert where it is the events that are not stored", (server) =>
    Effect.gen(function* () {
      yield* worker({ alertEvery: 100 })
      const facts = yield* history
      server.fillDisk()
      assert.match((yield* Effect.flip(publish("a", "x".repeat(100_000)))).message, /timeout/)
      server.emptyDisk()
      const isRaised = ({ alert, kind }: (typeof facts.facts)[number]) =>
        kind === "alert-raised" && alert?.name === "disk-failed" && alert.level === "critical"
      yield* facts.until((all) => all.some(isRaised))
    })
  )

  it.live.skipIf(!canMount())("is told of as one where all servers of a cluster have one", () =>
    Effect.gen(function* () {
      const cluster = yield* Effect.acquireRelease(
        Effect.promise(() => startCluster(3, { diskBytes: 2 * diskBytes })),
        (started) => Effect.promise(() => started.stop())
      )
      const place = installation(cluster, { replicas: 3 })
      yield* place.run(
        Effect.gen(function* () {
          yield* worker()
          for (const server of cluster.servers.values()) server.fillDisk()
          const { code } = yield* eventually(
            run("status", "--check", "--nats", place.url, "--prefix", place.prefix),
            ({ err }) => /disk was full.* restart/.test(err.join())
          )
          assert.strictEqual(code, 1)
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
