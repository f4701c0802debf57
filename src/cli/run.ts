import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { Cause, Effect, Exit, Layer } from "effect"
import { CliError, Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { BrokerError } from "../broker/connection.ts"
import { alerts } from "./alerts.ts"
import { dead } from "./dead.ts"
import { dev } from "./dev.ts"
import { endpoint } from "./endpoint.ts"
import { petrel } from "./frame.ts"
import { history } from "./history.ts"
import { init } from "./init.ts"
import { logging } from "./logging.ts"
import { presets } from "./presets.ts"
import { publish } from "./publish.ts"
import { runMain } from "./signals.ts"
import { OutputClosed } from "./stdout.ts"
import { usage } from "./usage.ts"
import { worker } from "./worker.ts"

const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer)
  )
)

const program = petrel.pipe(
  Command.withSubcommands([dev, init, worker, endpoint, publish, history, dead, alerts, presets]),
  Command.run({ version: packageJson.version }),
  Effect.provide(Layer.mergeAll(platform, logging, usage))
)

const streamNotFound = 10059

/** The error's own words; where a stream is not there, what to do about it. */
const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error instanceof BrokerError && error.code === streamNotFound
    ? `${error.message}: run \`petrel init\` first, or name another installation with --nats and --prefix`
    : error.message
}

const oneLine = (text: string): string => text.trim().replaceAll(/\s*\n\s*/g, " ")

const say = (text: string): void => {
  process.stderr.write(`petrel: ${text}\n`)
}

/** Exit codes: 0 it worked, 1 it did not and a sentence says why, 128 + n a signal ended it. */
const codeOf = (exit: Exit.Exit<void, unknown>, signal: number): number => {
  if (Exit.isSuccess(exit)) return 0
  const { cause } = exit
  if (Cause.hasInterruptsOnly(cause)) return signal
  const defect = cause.reasons.find(Cause.isDieReason)
  if (defect !== undefined) {
    say(`this is a defect of Petrel; please report it with what follows\n${Cause.pretty(cause)}`)
    return 1
  }
  const error = cause.reasons.find(Cause.isFailReason)?.error
  if (error instanceof OutputClosed) return 0
  if (CliError.isCliError(error) && error._tag === "ShowHelp")
    return error.errors.length > 0 || error.commandPath.length > 1 ? 1 : 0
  say(oneLine(messageOf(error)))
  return 1
}

/** Runs the command line of this process. */
export const run = (): void => {
  // Each write hears of its own failure; without a listener the stream's event would be a crash.
  process.stdout.on("error", () => undefined)
  process.stderr.on("error", () => undefined)
  runMain(program, codeOf)
}
