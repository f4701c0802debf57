import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { afterAll, beforeAll, vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { seeStream } from "../../src/broker/scan.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { endpoint, eventually, installation } from "../kit/engine.ts"
import { startGateway, stripeEvent, stripeSource, stripeWebhook } from "../kit/gateway.ts"
import { leaderIn } from "../kit/leaders.ts"
import type { TestCluster } from "../kit/nats-server.ts"
import { startCluster } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 600_000 })

const webhooks = Number(process.env.PETREL_TEST_WEBHOOKS ?? 4_000)
const concurrency = 24

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

describe("webhooks that come in to a cluster of three, while leaders of its streams are killed", () => {
  it.live("are one event each once they were answered with 2xx, and are delivered", () => {
    const place = installation(cluster, { replicas: 3 })
    return Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, types: ["stripe.>"] })
      yield* (yield* workerProcess(place, { leaseTtl: 5_000 })).delivering
      yield* stripeSource()
      // Two gateways get the same webhooks at the same time: only the broker knows which came first.
      const gateways = [yield* startGateway(), yield* startGateway()] as const
      const accepted = new Set<string>()
      const statuses = new Map<number, number>()
      let done = 0
      const send = Effect.fnUntraced(function* (id: string, gateway: 0 | 1) {
        while (true) {
          const webhook = stripeWebhook(stripeEvent(id))
          const { status } = yield* gateways[gateway].post("/in/acme/stripe", webhook)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status === 200) break
          assert.strictEqual(status, 503)
          yield* Effect.sleep("100 millis")
        }
        accepted.add(id)
        done++
      })
      const ids = Array.from({ length: webhooks }, (_, n) => `evt_${n}`)
      const sending = yield* Effect.forkScoped(
        Effect.forEach(ids, (id) => Effect.all([send(id, 0), send(id, 1)], { concurrency: 2 }), {
          concurrency,
          discard: true
        })
      )
      const killed: Array<string> = []
      for (const [place, stream] of [names.intake, names.events, names.intake].entries()) {
        const due = ((place + 1) / 4) * 2 * webhooks
        yield* eventually(
          Effect.sync(() => done),
          (count) => count >= due
        )
        const leader = yield* leaderIn(cluster, stream)
        killed.push(stream)
        yield* Effect.promise(leader.kill9)
        // It is away for some requests before it comes back.
        const before = done
        yield* eventually(
          Effect.sync(() => done),
          (count) => count >= Math.min(before + webhooks / 20, 2 * webhooks)
        )
        yield* Effect.promise(leader.restart)
      }
      yield* Fiber.join(sending)
      const { ask, jsm } = yield* natsClients
      const stored = Effect.map(
        Effect.eventually(ask("count", () => jsm.streams.info(names.intake))),
        ({ state }) => state.messages
      )
      assert.strictEqual(yield* stored, webhooks)
      const copied = Effect.eventually(ask("count", () => jsm.streams.info(names.events)))
      yield* eventually(copied, ({ state }) => state.messages >= webhooks)
      const times = new Map<string, number>()
      yield* Effect.scoped(
        seeStream({ stream: names.events, subjects: [">"] }, (message) => {
          const id = message.headers?.get("petrel-event-id") ?? ""
          times.set(id, (times.get(id) ?? 0) + 1)
          return false
        })
      )
      console.log(
        `killed the leaders of ${killed.join(", ")}; answers: ${[...statuses].map(([status, count]) => `${status} ×${count}`).join(", ")}; ${times.size} events`
      )
      assert.deepStrictEqual(
        ids.filter((id) => times.get(`acme.stripe.${id}`) !== 1),
        []
      )
      assert.strictEqual(times.size, webhooks)
      yield* eventually(
        Effect.sync(() => new Set(hook.requests.map(({ headers }) => headers["webhook-id"])).size),
        (count) => count === webhooks
      )
      const judged = Effect.map(audit({}), ({ judgement }) => judgement)
      const { problems } = yield* eventually(
        Effect.eventually(judged),
        ({ verdict }) => verdict === "clean"
      )
      assert.deepStrictEqual(problems.list, [])
    }).pipe(place.run, Effect.provide(quiet))
  })
})
