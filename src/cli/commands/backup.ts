import { Duration, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import packageJson from "../../../package.json" with { type: "json" }
import { timeText } from "../../domain/timestamp.ts"
import { backUp } from "../../operations/backup/backup.ts"
import { encodeManifest, type Manifest } from "../../operations/backup/manifest.ts"
import { bytesText, durationText, plural } from "../../text/quantities.ts"
import { connectedWithAccess, petrel, report } from "../root-command.ts"
import { makeCopyBar } from "../terminal/copy-progress.ts"

const directory = Argument.String("DIR").pipe(
  Argument.withDescription("An empty folder, or one that is made")
)

const bytesOf = ({ streams }: Manifest): number =>
  streams.reduce((sum, { bytes, tail }) => sum + bytes + (tail?.bytes ?? 0), 0)

const summary = (manifest: Manifest, directory: string): string => {
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
      summary(manifest, directory)
    )
  })
).pipe(
  Command.withDescription("Copy an installation into a folder while it works"),
  Command.withExamples([
    { command: "petrel backup /var/backups/petrel/monday", description: "Workers go on meanwhile" }
  ])
)
