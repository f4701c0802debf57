import { Option, Schema } from "effect"

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
