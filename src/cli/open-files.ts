import { Effect, Option, Schema } from "effect"
import {
  connectionsWithin,
  filesFor,
  filesForConnections,
  loadWithin
} from "../policy/open-files.ts"

const Limits = Schema.Struct({
  userLimits: Schema.Struct({ open_files: Schema.Struct({ soft: Schema.Number }) })
})

/**
 * Returns how many files and connections this process may have open; undefined where there is no
 * limit, or none is known. To be called before there are connections: the report that it reads asks
 * a name server for the names of their peers.
 */
export const openFileLimit = (): number | undefined =>
  Option.getOrUndefined(Schema.decodeUnknownOption(Limits)(process.report.getReport()))?.userLimits
    .open_files.soft

/** The files that a process may have open, of which a part of it takes a share. */
export interface OpenFiles {
  readonly files: number | undefined
  /** How many parts share them. */
  readonly parts: number
}

const shareOf = ({ files, parts }: OpenFiles) =>
  files === undefined ? undefined : Math.floor(files / parts)

/** Returns the requests of a worker for which there are files, and logs where they are fewer. */
export const workerLoad = Effect.fnUntraced(function* (wanted: number, open: OpenFiles) {
  const load = loadWithin(wanted, shareOf(open))
  if (load.maxInFlight < wanted)
    yield* Effect.logWarning(
      `this process may have ${open.files} files open: at most ${load.maxInFlight} requests are in flight, not ${wanted}; that many need \`ulimit -n ${filesFor(wanted) * open.parts}\` (systemd: LimitNOFILE)`
    )
  return load
})

/**
 * Returns the connections to a server for which there are files, and logs where they are fewer.
 *
 * @param wanted connections that may have a place.
 * @param others files that the server needs besides.
 */
export const serverConnections = Effect.fnUntraced(function* (
  wanted: number,
  others: number,
  open: OpenFiles
) {
  const { max, maxHeld } = connectionsWithin(wanted, others, shareOf(open))
  if (max < wanted)
    yield* Effect.logWarning(
      `this process may have ${open.files} files open: at most ${max} connections are taken, not ${wanted}; that many need \`ulimit -n ${filesForConnections(wanted, others) * open.parts}\` (systemd: LimitNOFILE)`
    )
  return { maxConnections: max, maxHeldConnections: maxHeld }
})
