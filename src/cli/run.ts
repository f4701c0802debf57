import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { alerts } from "./alerts.ts"
import { audit } from "./audit.ts"
import { dead } from "./dead.ts"
import { delivery } from "./delivery.ts"
import { dev } from "./dev.ts"
import { endingOf } from "./ending.ts"
import { endpoint } from "./endpoint.ts"
import { petrel } from "./frame.ts"
import { history } from "./history.ts"
import { init } from "./init.ts"
import { logging } from "./logging.ts"
import { presets } from "./presets.ts"
import { publish } from "./publish.ts"
import { rebuild } from "./rebuild.ts"
import { repartition } from "./repartition.ts"
import { replay } from "./replay.ts"
import { runMain } from "./signals.ts"
import { status } from "./status.ts"
import { usage } from "./usage.ts"
import { worker } from "./worker.ts"
import { workers } from "./workers.ts"

const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer)
  )
)

const program = petrel.pipe(
  Command.withSubcommands([
    dev,
    init,
    status,
    worker,
    workers,
    repartition,
    endpoint,
    publish,
    history,
    dead,
    replay,
    audit,
    delivery,
    rebuild,
    alerts,
    presets
  ]),
  Command.run({ version: packageJson.version }),
  Effect.provide(Layer.mergeAll(platform, logging, usage))
)

/** Runs the command line of this process. */
export const run = (): void => {
  // Each write hears of its own failure; without a listener the stream's event would be a crash.
  process.stdout.on("error", () => undefined)
  process.stderr.on("error", () => undefined)
  runMain(program, (exit, signal) => {
    const { code, said } = endingOf(exit, signal)
    if (said !== undefined) process.stderr.write(`petrel: ${said}\n`)
    return code
  })
}
