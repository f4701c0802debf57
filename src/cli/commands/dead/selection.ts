import { Option } from "effect"
import { Argument, Flag } from "effect/cli"
import { typeFilterProblem } from "../../../domain/type-filter.ts"
import type { ReasonCounts } from "../../../operations/dead-letters/dead-letter-selection.ts"
import {
  deadReasons,
  statusProblem
} from "../../../operations/dead-letters/dead-letter-selection.ts"
import { countText, plural } from "../../../text/quantities.ts"
import {
  endpointFlag,
  endpointNameFlag,
  isSet,
  maybe,
  nameFlag,
  tenantFlag,
  timeFlag
} from "../../flags/shared.ts"

const idExpected = "must be the number of a dead letter, as `petrel dead list` shows it"

const readId = (text: string): Option.Option<number> => {
  const id = /^\d{1,15}$/.test(text) ? Number(text) : 0
  return id > 0 ? Option.some(id) : Option.none()
}

/** The id of the dead letter that a command acts on. */
export const idArgument = Argument.String("ID").pipe(
  Argument.withDescription("Its number, as `petrel dead list` shows it"),
  Argument.filterMap(readId, () => idExpected)
)

const reasonFlag = nameFlag("reason", deadReasons).pipe(
  Flag.withMetavar("REASON"),
  Flag.withDescription(`Only those with this reason: ${deadReasons.join(", ")}`)
)

const statusFlag = Flag.String("status").pipe(
  Flag.withMetavar("STATUS"),
  Flag.withDescription("Only those with this status of the last answer: 503, or 5xx"),
  Flag.filterMap(
    (text) => {
      const status = text.toLowerCase()
      return statusProblem(status) === undefined ? Option.some(status) : Option.none()
    },
    (text) => statusProblem(text.toLowerCase()) ?? ""
  )
)

const typeFlag = Flag.String("type").pipe(
  Flag.withMetavar("FILTER"),
  Flag.withDescription("Only those of these event types: invoice.paid, or 'invoice.*'"),
  Flag.filterMap(
    (text) => (typeFilterProblem(text) === undefined ? Option.some(text) : Option.none()),
    (text) => typeFilterProblem(text) ?? ""
  )
)

const commonFlags = {
  tenant: tenantFlag,
  since: timeFlag("since", "Ended from then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
  until: timeFlag("until", "Ended up to then, in the same form"),
  id: Flag.String("id").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Only the one of this number; may be repeated"),
    Flag.filterMap(readId, () => idExpected),
    Flag.atLeast(0)
  )
}

/** A flag that may be repeated, of whose values any holds. (Default: any value) */
const several = <A>(flag: Flag.Flag<A>) =>
  flag.pipe(
    Flag.atLeast(0),
    Flag.map((values) => (values.length === 0 ? undefined : values))
  )

/** Flags of a list of dead letters. */
export const listFlags = {
  ...commonFlags,
  endpoint: several(
    endpointNameFlag(
      "endpoint",
      "Only this endpoint's. May be repeated, as --reason, --status and --type: any holds"
    )
  ),
  reason: several(reasonFlag),
  status: several(statusFlag),
  type: several(typeFlag)
}

/** Flags of commands that change dead letters: selecting all of them needs --all. */
export const selectionFlags = {
  ...commonFlags,
  endpoint: endpointFlag,
  reason: maybe(reasonFlag),
  status: maybe(statusFlag),
  type: maybe(typeFlag),
  all: isSet("all", "All of them")
}

/** Returns the numbers of dead letters by reason as lines, highest first. */
export const reasonLines = (reasons: ReasonCounts): ReadonlyArray<string> =>
  Object.entries(reasons).map(
    ([reason, count]) => `  ${reason.padEnd(18)}  ${countText(count).padStart(9)}`
  )

export const lettersText = (count: number): string => plural(count, "dead letter")

/** What has become of dead letters that were asked for and do not exist. */
export const goneText = "discarded, or too old and no longer kept"
