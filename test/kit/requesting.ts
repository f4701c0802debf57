import { Effect } from "effect"
import { IpNetwork } from "effect/net"
import { startAttempt } from "../../src/delivery/http/attempt.ts"
import { makeConnections } from "../../src/delivery/http/egress.ts"
import { targetOf } from "../../src/endpoints/target.ts"

/** Sends a request like a worker. Returns the status, or the class of the error. */
const asWorker = (url: string) =>
  Effect.gen(function* () {
    const networks = [IpNetwork.fromStringUnsafe("127.0.0.0/8")]
    const { agentOf } = yield* makeConnections({
      everyone: { networks, ports: [] },
      tenants: new Map()
    })
    return yield* Effect.callback<number | string | undefined>((resume) => {
      const request = {
        ...{ tenant: "acme", target: targetOf(url), headers: [], ownHeaders: [] },
        ...{
          body: Buffer.alloc(0),
          connectTimeoutMs: 5_000,
          timeoutMs: 5_000,
          redirects: 0,
          redirectsTo: []
        }
      }
      startAttempt(agentOf("acme"), request, ({ error, status }) =>
        resume(Effect.succeed(error?.class ?? status))
      )
    })
  })

/**
 * Runs in a separate process, whose environment determines what Node trusts. Requests the URL with
 * Node's own fetch and like a worker.
 */
const run = Effect.fnUntraced(function* (url: string) {
  const node = yield* Effect.promise(async () => (await fetch(url)).status)
  const worker = yield* asWorker(url)
  process.stdout.write(JSON.stringify({ node, worker }))
}, Effect.scoped)

Effect.runFork(run(process.argv[2] ?? "")).addObserver(() =>
  process.stdout.write("", () => process.exit())
)
