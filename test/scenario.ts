import { it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect, Layer, References } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Broker } from "../src/broker/connection.ts"
import type { TopologyOptions } from "../src/broker/topology.ts"
import type { Facts } from "../src/history/facts.ts"
import type { Installation } from "./engine.ts"
import { installation } from "./engine.ts"
import { makeLog } from "./log.ts"
import type { TestServer, TestServerOptions } from "./nats-server.ts"
import { startServer } from "./nats-server.ts"
import type { Script } from "./receiver.ts"

/** Says nothing. */
export const quiet = Layer.succeed(References.MinimumLogLevel, "Fatal")

/**
 * A server for the tests of a file, and how they are told: each on an installation of its own, so
 * that they may run at the same time, and silent, since most of them are about what goes wrong.
 */
export const onServer = (options: TestServerOptions = {}) => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer(options)
  })
  afterAll(() => server.stop())
  return {
    server: () => server,
    scenario: <E>(
      name: string,
      story: (
        place: Installation,
        server: TestServer
      ) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>,
      topology: Partial<TopologyOptions> = {}
    ) =>
      it.live(name, () => {
        const place = installation(server, topology)
        return Effect.provide(place.run(story(place, server)), quiet)
      })
  }
}

/** Told with a server of its own, since that goes away, and with all that is logged, by the connection too. */
export const outage = <E>(
  name: string,
  story: (
    place: Installation,
    server: TestServer,
    log: ReturnType<typeof makeLog>
  ) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>,
  topology: Partial<TopologyOptions> = {}
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer()),
        (server) => Effect.promise(() => server.stop())
      )
      const log = makeLog()
      const place = installation(server, topology)
      yield* Effect.provide(place.run(story(place, server, log)), log.layer)
    })
  )

/** The same answers, but a request that repeats one that was taken is refused for good. */
export const refusingRepeats = (script: Script): Script => {
  const taken = new Set<unknown>()
  return async (request, response) => {
    const id = request.headers["webhook-id"]
    if (taken.has(id)) return { status: 409 }
    const answer = await (typeof script === "function" ? script(request, response) : script)
    const { status = 200 } = answer ?? {}
    if (status < 300) taken.add(id)
    return { ...answer, status }
  }
}

/** Answers a delivery's first attempt with the first status, and so on; the last one repeats. */
export const byAttempt =
  (...statuses: ReadonlyArray<number>): Script =>
  ({ headers }) => ({
    status: statuses[Math.min(Number(headers["petrel-attempt"]), statuses.length) - 1] ?? 200
  })
