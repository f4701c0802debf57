import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { Effect, Layer } from "effect"
import { program, reportExit } from "./program.ts"
import { logging } from "./terminal/logging.ts"
import { runMain } from "./terminal/signals.ts"

const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer)
  )
)

/** Runs the command line of this process. */
export const run = (): void => {
  // Each write reports its own failure. Without a listener, the stream's error event would crash
  // the process.
  process.stdout.on("error", () => undefined)
  process.stderr.on("error", () => undefined)
  runMain(Effect.provide(program, Layer.merge(platform, logging)), (exit, signal) =>
    reportExit(exit, signal, process)
  )
}
