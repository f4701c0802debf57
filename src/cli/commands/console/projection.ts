import { resolve } from "node:path"
import { Duration, Option } from "effect"
import { Flag } from "effect/cli"
import { bytesExpected, bytesText, readBytes } from "../../../text/quantities.ts"
import { durationFlag, isSet } from "../../flags/shared.ts"

/** What a projection keeps by default: how long, ms, and how much, bytes. */
export const defaultKeepMs = 7 * 24 * 60 * 60_000
export const defaultMaxBytes = 10 * 1_024 ** 3

/** With less, a few hours of deliveries are all that is there to search. */
const minBytes = 16 * 1_024 ** 2
const minKeepMs = 60_000

/** The flags of a console's projection. */
export const projectionFlags = {
  data: Flag.String("data").pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("Where the projection keeps its files (default: .petrel/console)"),
    Flag.withDefault(".petrel/console"),
    Flag.filterMap(
      Option.liftThrowable((path) => resolve(path)),
      () => "must begin with /, as the folder in which this was started is gone"
    )
  ),
  replaceLog: isSet(
    "replace-log",
    "Drop the files of another installation in --data, and start over"
  ),
  keep: durationFlag(
    "keep",
    "How long the projection keeps deliveries that have ended (default: 7d)",
    { least: minKeepMs, problem: "must be at least a minute" }
  ).pipe(Flag.withDefault(Duration.days(7)), Flag.map(Duration.toMillis)),
  maxBytes: Flag.String("max-bytes").pipe(
    Flag.withMetavar("BYTES"),
    Flag.withDescription(
      `How much disk it may take: the oldest deliveries go first (default: ${bytesText(defaultMaxBytes)})`
    ),
    Flag.withDefault(bytesText(defaultMaxBytes)),
    Flag.filterMap(
      (text) =>
        Option.filter(Option.fromUndefinedOr(readBytes(text)), (bytes) => bytes >= minBytes),
      (text) =>
        readBytes(text) === undefined ? bytesExpected : `must be at least ${bytesText(minBytes)}`
    )
  )
}
