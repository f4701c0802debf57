import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { Clock, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { clock } from "../time/timers.ts"
import { exitOf } from "./exit.ts"
import { logging } from "./logging.ts"
import { named } from "./named.ts"
import { petrel } from "./root-command.ts"
import { runMain } from "./signals.ts"
import { usage } from "./usage.ts"
import { visible } from "./visible.ts"

/**
 * In the order of the help. Each command is imported separately, since each loads many modules that
 * the others do not need.
 */
const commands = {
  dev: async () => (await import("./dev.ts")).dev,
  init: async () => (await import("./init.ts")).init,
  status: async () => (await import("./status.ts")).status,
  worker: async () => (await import("./worker.ts")).worker,
  workers: async () => (await import("./workers.ts")).workers,
  repartition: async () => (await import("./repartition.ts")).repartition,
  endpoint: async () => (await import("./endpoint.ts")).endpoint,
  tenant: async () => (await import("./tenant.ts")).tenant,
  publish: async () => (await import("./publish.ts")).publish,
  history: async () => (await import("./history.ts")).history,
  dead: async () => (await import("./dead.ts")).dead,
  replay: async () => (await import("./replay.ts")).replay,
  audit: async () => (await import("./audit.ts")).audit,
  delivery: async () => (await import("./delivery.ts")).delivery,
  rebuild: async () => (await import("./rebuild.ts")).rebuild,
  alerts: async () => (await import("./alerts.ts")).alerts,
  presets: async () => (await import("./presets.ts")).presets
}

/** Loads the named command. Without one, loads all commands, for the help and for suggestions. */
const wanted = (args: ReadonlyArray<string>) => {
  if (args.includes("--version") || args.includes("-v")) return Promise.resolve([])
  const name = named(args)
  const all = Object.entries(commands)
  const one = all.filter(([known]) => known === name)
  return Promise.all((one.length > 0 ? one : all).map(([, load]) => load()))
}

const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer)
  )
)

const program = Effect.flatMap(
  Effect.promise(() => wanted(process.argv.slice(2))),
  (subcommands) =>
    petrel.pipe(Command.withSubcommands(subcommands), Command.run({ version: packageJson.version }))
).pipe(Effect.provide(Layer.mergeAll(platform, logging, usage, Layer.succeed(Clock.Clock, clock))))

/** Runs the command line of this process. */
export const run = (): void => {
  // Each write reports its own failure. Without a listener, the stream's error event would crash
  // the process.
  process.stdout.on("error", () => undefined)
  process.stderr.on("error", () => undefined)
  runMain(program, (exit, signal) => {
    const { code, message } = exitOf(exit, signal)
    if (message !== undefined) process.stderr.write(`petrel: ${visible(message)}\n`)
    return code
  })
}
