import { flushCompileCache } from "node:module"
import { Effect, References, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { startWorker } from "../../src/worker/worker.ts"
import { loopback } from "./engine.ts"

/** The parameters of the process: its only argument, as JSON. */
const Parameters = Schema.Struct({
  url: Schema.String,
  prefix: Schema.String,
  eventRoot: Schema.String,
  publishTimeoutMs: Schema.Int,
  id: Schema.String,
  roles: Schema.Array(Schema.Literals(["router", "deliver"])),
  leaseTtl: Schema.optionalKey(Schema.Int),
  maxWaiting: Schema.optionalKey(Schema.Int),
  alertEvery: Schema.optionalKey(Schema.Int),
  /** Minimum log level. (Default: errors) */
  logLevel: Schema.optionalKey(Schema.Literals(["Info", "Error"])),
  /**
   * The failpoint, and the number of its arrival, at which the process kills or freezes itself.
   * (Default: none)
   */
  crash: Schema.optionalKey(
    Schema.Struct({
      step: Schema.String,
      arrival: Schema.Int,
      signal: Schema.optionalKey(Schema.Literals(["SIGKILL", "SIGSTOP"]))
    })
  )
})
export type Parameters = typeof Parameters.Type

/**
 * Runs a worker that kills or freezes itself at a failpoint. Reports `delivering` when it delivers.
 */
const run = Effect.gen(function* () {
  const { crash, ...options } = yield* Schema.decodeUnknownEffect(
    Schema.fromJsonString(Parameters)
  )(process.argv[2])
  let arrivals = 0
  const checkpoint = (step: string) => {
    if (step === crash?.step && ++arrivals === crash.arrival)
      process.kill(process.pid, crash.signal ?? "SIGKILL")
  }
  const { alertEvery, id, leaseTtl, logLevel = "Error", maxWaiting, roles, ...broker } = options
  yield* Effect.gen(function* () {
    const worker = yield* startWorker({
      id,
      roles,
      leaseTtl,
      maxWaiting,
      alertEvery,
      allowNetworks: loopback
    })
    yield* worker.delivering
    process.stdout.write("delivering\n")
    // Node writes its compile cache when a process exits, and these are killed.
    flushCompileCache()
    return yield* worker.refused
  }).pipe(
    Effect.scoped,
    Effect.provideService(Failpoint, checkpoint),
    Effect.provide(connectTo(broker)),
    Effect.provideService(References.MinimumLogLevel, logLevel)
  )
})

if (import.meta.main) {
  // Standard input ends when the parent process has exited.
  process.stdin.on("end", () => process.exit(1)).resume()
  Effect.runFork(Effect.tapCause(run, Effect.logFatal)).addObserver(() => process.exit(1))
}
