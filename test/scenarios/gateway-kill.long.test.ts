import { Agent, request as httpRequest } from "node:http"
import { createServer } from "node:net"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { seeStream } from "../../src/broker/scan.ts"
import { start } from "../cli/running.ts"
import { eventually } from "../kit/engine.ts"
import { stripeEvent, stripeSource, stripeWebhook } from "../kit/gateway.ts"
import { outage } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 600_000 })

const webhooks = Number(process.env.PETREL_TEST_WEBHOOKS ?? 20_000)
const concurrency = 64
/** How often each is killed, spread over the webhooks. */
const kills = { gateway: 4, broker: 3 }

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Returns the status of an answer; 0 where the connection ended without one. */
const post = (port: number, agent: Agent, id: string) =>
  Effect.callback<number>((resume) => {
    const { body, headers } = stripeWebhook(stripeEvent(id))
    const request = httpRequest(
      { host: "127.0.0.1", port, path: "/in/acme/stripe", method: "POST", headers, agent },
      (response) => {
        response.resume()
        response.on("end", () => resume(Effect.succeed(response.statusCode ?? 0)))
        response.on("error", () => resume(Effect.succeed(0)))
      }
    )
    request.on("error", () => resume(Effect.succeed(0)))
    request.end(body)
  })

describe(`${webhooks} webhooks, a third of them twice, through kills of gateway and broker`, () => {
  outage("are one event each, once they were answered with 2xx", (place, server) =>
    Effect.gen(function* () {
      yield* stripeSource()
      const port = yield* freePort
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const startGateway = Effect.tap(
        start("ingest", "--listen", `127.0.0.1:${port}`, ...flags),
        ({ until }) => until((out) => out.some((line) => line.includes("webhooks come in")))
      )
      let gateway = yield* startGateway
      const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
      const accepted = new Set<string>()
      let refused = 0
      let done = 0

      /** As a provider does: again until it is answered with 2xx. One in ten gives up at once. */
      const sendOne = Effect.fnUntraced(function* (id: string, givesUp: boolean) {
        for (;;) {
          const status = yield* post(port, agent, id)
          if (status >= 200 && status < 300) {
            accepted.add(id)
            break
          }
          assert.include([0, 503], status)
          refused++
          if (givesUp) break
          yield* Effect.sleep("100 millis")
        }
        done++
      })
      const ids = Array.from({ length: webhooks }, (_, n) => `evt_${n}`)
      const requests = ids.flatMap((id, n) => [
        { id, givesUp: n % 10 === 0 },
        ...(n % 3 === 0 ? [{ id, givesUp: false }] : [])
      ])
      const sending = yield* Effect.forkScoped(
        Effect.forEach(requests, ({ givesUp, id }) => sendOne(id, givesUp), {
          concurrency,
          discard: true
        })
      )
      const moments = [
        ...Array.from({ length: kills.gateway }, (_, n) => ({
          at: (n + 1) / (kills.gateway + 1),
          run: Effect.gen(function* () {
            yield* gateway.signal("SIGKILL")
            yield* gateway.ended
            gateway = yield* startGateway
          })
        })),
        ...Array.from({ length: kills.broker }, (_, n) => ({
          at: (n + 0.5) / kills.broker,
          run: Effect.promise(async () => {
            await server.kill9()
            await server.restart()
          })
        }))
      ].toSorted((a, b) => a.at - b.at)
      for (const { at, run } of moments) {
        yield* eventually(
          Effect.sync(() => done),
          (count) => count >= at * requests.length || count === requests.length
        )
        yield* run
      }
      yield* Fiber.join(sending)
      agent.destroy()

      const { ask, jsm, names } = yield* natsClients
      const { state } = yield* ask("count", () => jsm.streams.info(names.intake))
      const copied = ask("count", () => jsm.streams.info(names.events))
      yield* eventually(copied, ({ state: events }) => events.messages >= state.messages)
      const times = new Map<string, number>()
      yield* Effect.scoped(
        seeStream({ stream: names.events, subjects: [">"] }, (message) => {
          const id = message.headers?.get("petrel-event-id") ?? ""
          times.set(id, (times.get(id) ?? 0) + 1)
          return false
        })
      )
      const missing = [...accepted].filter((id) => !times.has(`acme.stripe.${id}`))
      const twice = [...times].filter(([, count]) => count > 1)
      console.log(
        `${requests.length} requests, ${refused} not answered or with 503, ${accepted.size} ids with 2xx, ${times.size} events`
      )
      assert.deepStrictEqual(missing, [])
      assert.deepStrictEqual(twice, [])
      assert.isAbove(accepted.size, 0.95 * webhooks)
      assert.isAbove(refused, 0)
    })
  )
})
