import { Clock, Effect, type Exit, Layer, Stdio } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { clock } from "../time/timers.ts"
import { exitOf } from "./exit.ts"
import { visible } from "./format/visible.ts"
import { petrel } from "./root-command.ts"
import type { OutputStreams } from "./terminal/stdout.ts"
import { usage } from "./usage.ts"

/** Global flags that take a value. */
const withValue: ReadonlyArray<string> = [
  "--nats",
  "--creds",
  "--nkey",
  "--nats-ca",
  "--nats-cert",
  "--nats-key",
  "--prefix",
  "--events",
  "--log-level",
  "--completions"
]

/** Returns the arguments that are neither flags nor a global flag's values. */
const operandsOf = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.filter((arg, index) => !arg.startsWith("-") && !withValue.includes(args[index - 1] ?? ""))

/**
 * Returns the first argument that is neither a flag nor a flag's value: the command, if it is one.
 */
const named = (args: ReadonlyArray<string>): string | undefined => operandsOf(args)[0]

const isHelp = (arg: string): boolean => arg === "--help" || arg === "-h"

/** True for a flag of which it is not known here whether it takes a value. */
const isOfCommand = (arg: string): boolean =>
  arg.startsWith("-") && !isHelp(arg) && arg !== "--json" && !withValue.includes(arg)

/** True if the operands name a command that a group does not have. */
const namesNone = (group: Command.Command.Any, [name, ...rest]: ReadonlyArray<string>): boolean => {
  const all = group.subcommands.flatMap(({ commands }) => commands)
  if (name === undefined || all.length === 0) return false
  const found = all.find((command) => command.name === name)
  return found === undefined || namesNone(found, rest)
}

/**
 * Returns the arguments without a request for help with a command that there is not: the library
 * would show the help of its group instead, as if that had been asked for.
 */
const withoutVainHelp = (
  args: ReadonlyArray<string>,
  root: Command.Command.Any
): ReadonlyArray<string> => {
  const end = args.findIndex(isOfCommand)
  const certain = end === -1 ? args : args.slice(0, end)
  return namesNone(root, operandsOf(certain)) ? args.filter((arg) => !isHelp(arg)) : args
}

/**
 * In the order of the help. Each command is imported separately, since each loads many modules that
 * the others do not need.
 */
const commands = {
  dev: async () => (await import("./commands/dev/dev.ts")).dev,
  init: async () => (await import("./commands/init/init.ts")).init,
  status: async () => (await import("./commands/status/status.ts")).status,
  worker: async () => (await import("./commands/worker/worker.ts")).worker,
  workers: async () => (await import("./commands/workers.ts")).workers,
  console: async () => (await import("./commands/console/console.ts")).console,
  ingest: async () => (await import("./commands/ingest/ingest.ts")).ingest,
  openapi: async () => (await import("./commands/openapi.ts")).openapi,
  backup: async () => (await import("./commands/backup.ts")).backup,
  restore: async () => (await import("./commands/backup.ts")).restore,
  repartition: async () => (await import("./commands/repartition.ts")).repartition,
  upgrade: async () => (await import("./commands/upgrade.ts")).upgrade,
  endpoint: async () => (await import("./commands/endpoint/endpoint.ts")).endpoint,
  source: async () => (await import("./commands/source/source.ts")).source,
  reconcile: async () => (await import("./commands/reconcile/reconcile.ts")).reconcile,
  quarantine: async () => (await import("./commands/quarantine/quarantine.ts")).quarantine,
  tenant: async () => (await import("./commands/tenant.ts")).tenant,
  token: async () => (await import("./commands/token.ts")).token,
  portal: async () => (await import("./commands/portal.ts")).portal,
  login: async () => (await import("./commands/portal.ts")).login,
  publish: async () => (await import("./commands/publish.ts")).publish,
  receive: async () => (await import("./commands/receive/receive.ts")).receive,
  inbox: async () => (await import("./commands/inbox/inbox.ts")).inbox,
  outbox: async () => (await import("./commands/outbox/outbox.ts")).outbox,
  history: async () => (await import("./commands/history/history.ts")).history,
  dead: async () => (await import("./commands/dead/dead.ts")).dead,
  replay: async () => (await import("./commands/replay/replay.ts")).replay,
  audit: async () => (await import("./commands/audit/audit.ts")).audit,
  stats: async () => (await import("./commands/stats.ts")).stats,
  delivery: async () => (await import("./commands/delivery/delivery.ts")).delivery,
  events: async () => (await import("./commands/logged.ts")).events,
  attempts: async () => (await import("./commands/logged.ts")).attempts,
  projection: async () => (await import("./commands/projection.ts")).projection,
  rebuild: async () => (await import("./commands/rebuild.ts")).rebuild,
  alerts: async () => (await import("./commands/alerts/alerts.ts")).alerts,
  presets: async () => (await import("./commands/presets.ts")).presets
}

/** The commit that the package was built from, and its day. The sources have none. */
declare const PETREL_REVISION: string | undefined

const version =
  typeof PETREL_REVISION === "string" && PETREL_REVISION !== ""
    ? `${packageJson.version} (${PETREL_REVISION})`
    : packageJson.version

/** Loads the named command. Without one, loads all commands, for the help and for suggestions. */
const wanted = (args: ReadonlyArray<string>) => {
  if (args.includes("--version") || args.includes("-v")) return Promise.resolve([])
  const name = named(args)
  const all = Object.entries(commands)
  const one = all.filter(([known]) => known === name)
  return Promise.all((one.length > 0 ? one : all).map(([, load]) => load()))
}

/** Returns `petrel` with the command that the arguments name, or with all if they name none. */
export const rootFor = (args: ReadonlyArray<string>) =>
  Effect.map(
    Effect.promise(() => wanted(args)),
    (subcommands) => petrel.pipe(Command.withSubcommands(subcommands))
  )

/** The command line, as the arguments in `Stdio` say. */
export const program = Stdio.Stdio.pipe(
  Effect.flatMap(({ args }) => args),
  Effect.flatMap((args) =>
    Effect.flatMap(rootFor(args), (root) =>
      Command.runWith(root, { version })(withoutVainHelp(args, root))
    )
  ),
  Effect.provide(Layer.merge(usage, Layer.succeed(Clock.Clock, clock)))
)

/**
 * Prints why the program failed. Returns the exit code.
 *
 * @param signal the exit code if a signal interrupted it.
 */
export const reportExit = (
  exit: Exit.Exit<unknown, unknown>,
  signal: number,
  { stderr }: OutputStreams
): number => {
  const { code, message } = exitOf(exit, signal)
  if (message !== undefined) stderr.write(`petrel: ${visible(message)}\n`)
  return code
}
