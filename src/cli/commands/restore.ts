import { Duration, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { timeText } from "../../domain/timestamp.ts"
import { encodeManifest } from "../../operations/backup/manifest.ts"
import type { Mended } from "../../operations/backup/mend.ts"
import { type RestoreResult, restore as restoreBackup } from "../../operations/backup/restore.ts"
import { countText, durationText, plural } from "../../text/quantities.ts"
import { isSet, wholeNumber } from "../flags/shared.ts"
import { connectedWithAccess, petrel, report } from "../root-command.ts"
import { makeCopyBar } from "../terminal/copy-progress.ts"

const mendedText = ({ deadLettersRemoved, moved, roundsTaken }: Mended) => [
  ...(moved === 0
    ? []
    : [
        `${plural(moved, "delivery", "deliveries")} moved while they were copied, and are where they had moved to`
      ]),
  ...(deadLettersRemoved === 0
    ? []
    : [
        `${plural(deadLettersRemoved, "dead letter")} came after the last fact and were left out: their deliveries go on`
      ]),
  ...(roundsTaken === 0
    ? []
    : [
        `${plural(roundsTaken, "replay or redelivery", "replays and redeliveries")} that were under way go on with the first worker`
      ])
]

const summary = (result: RestoreResult, directory: string): string => {
  const { manifest, mended, messages, streams, tookMs } = result
  const took = durationText(Duration.millis(tookMs))
  const what = `${plural(messages, "message")} of ${plural(streams, "stream")}`
  const facts = timeText(manifest.history.at)
  const events = timeText(manifest.events.at)
  if (mended === undefined)
    return [
      `${directory} is whole: ${what}, checked in ${took}; nothing was changed`,
      `a restore to this broker would bring back facts up to ${facts}, events up to ${events}`
    ].join("\n")
  return [
    `restored ${what} in ${took}`,
    ...mendedText(mended),
    `facts go up to ${facts}: what was sent later may be sent again`,
    `events go up to ${events} (${countText(manifest.events.seq)}): publish again what was acknowledged later, with the same ids`,
    "next: `petrel init`, `petrel audit`, then start the workers; the broker that was backed up must not come back"
  ].join("\n")
}

/** Makes an installation of a backup. */
export const restore = Command.make(
  "restore",
  {
    directory: Argument.String("DIR").pipe(
      Argument.withDescription("The folder that `petrel backup` wrote")
    ),
    replicas: wholeNumber("replicas", [1, 5], "Copies of each stream (default: as there were)"),
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
    yield* report({ ...counts, ...mended, dryRun, backup }, summary(result, directory))
  })
).pipe(
  Command.withDescription("Make an installation of a backup, on a broker that has none"),
  Command.withExamples([
    { command: "petrel restore /var/backups/petrel/monday --dry-run", description: "Is it whole?" },
    { command: "petrel restore /var/backups/petrel/monday", description: "To an empty broker" }
  ])
)
