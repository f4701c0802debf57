import { it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect, Layer, References } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Broker } from "../../src/broker/broker.ts"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import type { Facts } from "../../src/history/facts.ts"
import type { Installation } from "./engine.ts"
import { installation } from "./engine.ts"
import { explained } from "./explained.ts"
import { makeLog } from "./log.ts"
import { isLong } from "./long.ts"
import type { TestServer, TestServerOptions } from "./nats-server.ts"
import { startServer } from "./nats-server.ts"
import type { Script } from "./receiver.ts"

/** Disables logging. */
export const quiet = Layer.succeed(References.MinimumLogLevel, "Fatal")

/**
 * Provides a server for the tests of a file. Each test has its own installation, so that tests may
 * run concurrently. Logging is disabled, since most tests are about failures.
 */
export const onServer = (options: TestServerOptions = {}) => {
  let server: TestServer
  const scenario = <E>(
    name: string,
    story: (
      place: Installation,
      server: TestServer
    ) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>,
    topology: Partial<TopologyOptions> = {},
    timeoutMs?: number
  ) =>
    it.live(
      name,
      (context) => {
        const place = installation(server, topology)
        return explained(context, Effect.provide(place.run(story(place, server)), quiet))
      },
      timeoutMs
    )
  beforeAll(async () => {
    server = await startServer(options)
  })
  afterAll(() => server.stop())
  return {
    server: () => server,
    scenario,
    /** A story that only `npm run test:long` tells. */
    longScenario: (...told: Parameters<typeof scenario>) => {
      if (isLong) scenario(...told)
      else it.skip(told[0], () => {})
    }
  }
}

/**
 * A test with a server of its own, which it stops. Captures all log lines, including those of the
 * connection.
 */
export const outage = <E>(
  name: string,
  story: (
    place: Installation,
    server: TestServer,
    log: ReturnType<typeof makeLog>
  ) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>,
  topology: Partial<TopologyOptions> = {}
) =>
  it.live(name, (context) =>
    explained(
      context,
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startServer()),
          (server) => Effect.promise(() => server.stop())
        )
        const log = makeLog()
        const place = installation(server, topology)
        yield* Effect.provide(place.run(story(place, server, log)), log.layer)
      }).pipe(Effect.scoped)
    )
  )

/** Answers as the script, but permanently refuses a repetition of an accepted request. */
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

/** Answers the n-th attempt of a delivery with the n-th status; the last one repeats. */
export const byAttempt =
  (...statuses: ReadonlyArray<number>): Script =>
  ({ headers }) => ({
    status: statuses[Math.min(Number(headers["petrel-attempt"]), statuses.length) - 1] ?? 200
  })
