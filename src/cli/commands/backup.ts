import { Duration, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import packageJson from "../../../package.json" with { type: "json" }
import { timeText } from "../../domain/timestamp.ts"
import { backUp } from "../../operations/backup/backup.ts"
import type { Manifest } from "../../operations/backup/manifest.ts"
import { encodeManifest } from "../../operations/backup/manifest.ts"
import type { Mended } from "../../operations/backup/mend.ts"
import type { RestoreResult } from "../../operations/backup/restore.ts"
import { restore as restoreBackup } from "../../operations/backup/restore.ts"
import { bytesText, countText, durationText, plural } from "../../text/quantities.ts"
import { isSet, wholeNumber } from "../flags/shared.ts"
import { connectedWithAccess, petrel, report } from "../root-command.ts"
import { makeCopyBar } from "../terminal/progress.ts"

const directory = Argument.String("DIR").pipe(
  Argument.withDescription("An empty folder; it is made if there is none")
)

const bytesOf = ({ streams }: Manifest): number =>
  streams.reduce((sum, { bytes, tail }) => sum + bytes + (tail?.bytes ?? 0), 0)

const backupSummary = (manifest: Manifest, directory: string): string => {
  const { completedAt, events, history, startedAt, streams } = manifest
  const messages = streams.reduce((sum, stream) => sum + stream.messages, 0)
  const took = durationText(Duration.millis(completedAt - startedAt))
  return [
    `${directory} has ${plural(messages, "message")} of ${plural(streams.length, "stream")}, ${bytesText(bytesOf(manifest))}; it took ${took}`,
    `facts up to ${timeText(history.at)}, events up to ${timeText(events.at)}`,
    "it holds the secrets of all endpoints: whoever can read it can sign as this platform"
  ].join("\n")
}

/** Copies an installation into a folder. */
export const backup = Command.make(
  "backup",
  { directory },
  Effect.fnUntraced(function* ({ directory }) {
    const { json } = yield* petrel
    const bar = yield* makeCopyBar(json)
    let expected = 0
    let of = 0
    const manifest = yield* backUp({
      directory,
      version: packageJson.version,
      copied: (bytes) => {
        of += bytes
        bar.at(expected + of)
      },
      tell: (step) =>
        Effect.sync(() => {
          if (step.event === "begun") bar.total(step.bytes)
          else if (step.event === "copying") {
            of = 0
            bar.label(step.stream)
          } else expected += Number(step.stream.state.bytes ?? 0)
        })
    }).pipe(Effect.provide(connectedWithAccess), Effect.ensuring(bar.clear))
    const { streams: _, ...rest } = encodeManifest(manifest)
    yield* report(
      { ...rest, directory, streams: manifest.streams.length, bytes: bytesOf(manifest) },
      backupSummary(manifest, directory)
    )
  })
).pipe(
  Command.withDescription("Copy an installation into a folder while it runs"),
  Command.withExamples([
    { command: "petrel backup /var/backups/petrel/monday", description: "Workers keep running" }
  ])
)

const mendedText = ({ deadLettersRemoved, moved, queuedAgain, roundsTaken }: Mended) => [
  ...(moved === 0
    ? []
    : [
        `${plural(moved, "delivery", "deliveries")} moved while they were copied, and are at their new places`
      ]),
  ...(queuedAgain === 0
    ? []
    : [
        `${plural(queuedAgain, "delivery", "deliveries")} had failed after ${queuedAgain === 1 ? "its" : "their"} queue was copied, and ${queuedAgain === 1 ? "waits" : "wait"} there for the next attempt`
      ]),
  ...(deadLettersRemoved === 0
    ? []
    : [
        `${plural(deadLettersRemoved, "dead letter")} whose facts came after the last one ${deadLettersRemoved === 1 ? "was left out: its delivery continues" : "were left out: their deliveries continue"}`
      ]),
  ...(roundsTaken === 0
    ? []
    : [
        `${plural(roundsTaken, "replay or redelivery that was under way continues", "replays and redeliveries that were under way continue")} with the first worker`
      ])
]

const restoreSummary = (result: RestoreResult, directory: string, dryRun: boolean): string => {
  const { lackedLastStep, manifest, mended, messages, streams, tookMs } = result
  const took = durationText(Duration.millis(tookMs))
  const what = `${plural(messages, "message")} of ${plural(streams, "stream")}`
  const facts = timeText(manifest.history.at)
  const events = timeText(manifest.events.at)
  const next =
    "next: `petrel init`, `petrel audit`, then start the workers; the broker that was backed up must not come back"
  if (lackedLastStep)
    return [
      "an earlier restore of this backup was interrupted at its last step, and had done everything else",
      ...(dryRun
        ? [
            "a restore would do that step, after which the broker accepts messages; nothing was changed"
          ]
        : ["that step is done now: the broker accepts messages", next])
    ].join("\n")
  if (mended === undefined)
    return [
      `${directory} is intact: ${what}, checked in ${took}; nothing was changed`,
      `a restore to this broker would bring back facts up to ${facts}, events up to ${events}`
    ].join("\n")
  return [
    `restored ${what} in ${took}`,
    ...mendedText(mended),
    `facts go up to ${facts}: what was sent later may be sent again`,
    `events go up to ${events} (${countText(manifest.events.seq)}): publish again what was acknowledged later, with the same ids`,
    next
  ].join("\n")
}

/** Makes an installation of a backup. */
export const restore = Command.make(
  "restore",
  {
    directory: Argument.String("DIR").pipe(
      Argument.withDescription("The folder that `petrel backup` wrote")
    ),
    replicas: wholeNumber("replicas", [1, 5], "Copies of each stream (default: as in the backup)"),
    dryRun: isSet("dry-run", "Check the backup and the broker, and change nothing")
  },
  Effect.fnUntraced(function* ({ directory, dryRun, replicas }) {
    const { json } = yield* petrel
    const bar = yield* makeCopyBar(json)
    let done = 0
    const result = yield* restoreBackup({
      directory,
      dryRun,
      replicas,
      tell: (step) => {
        if (step.event === "begun") bar.total(step.bytes * (dryRun ? 1 : 2))
        else if (step.event === "restoring") bar.label(step.stream)
        else if (step.event === "checked" || step.event === "sent") {
          done += step.bytes
          bar.at(done)
        }
      }
    }).pipe(Effect.provide(connectedWithAccess), Effect.ensuring(bar.clear))
    const { manifest, mended, ...counts } = result
    const { streams: _, ...backup } = encodeManifest(manifest)
    yield* report(
      { ...counts, ...mended, dryRun, backup },
      restoreSummary(result, directory, dryRun)
    )
  })
).pipe(
  Command.withDescription("Make an installation from a backup, on a broker that has none"),
  Command.withExamples([
    {
      command: "petrel restore /var/backups/petrel/monday --dry-run",
      description: "Is it intact?"
    },
    { command: "petrel restore /var/backups/petrel/monday", description: "To an empty broker" }
  ])
)
