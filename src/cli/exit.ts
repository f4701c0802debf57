import { Cause, Exit } from "effect"
import { CliError } from "effect/cli"
import { BrokerError } from "../broker/broker-error.ts"
import { isUnanswered } from "../broker/keep-going.ts"
import { PublishError } from "../broker/publication.ts"
import { Invalid, NotNow } from "../domain/problem.ts"
import { EventNotStored } from "../operations/refusals.ts"
import { flagProblems, withFlags } from "./flags/flag-problems.ts"
import { Refused } from "./refused.ts"
import { OutputClosed } from "./terminal/stdout.ts"

/** How the process exits: its exit code, and its message on stderr. */
interface ProcessExit {
  /**
   * 0: success, 1: failure, or what was checked is not as it should be; 2: the input is wrong, and
   * nothing was done; 128 + n: ended by signal n.
   */
  readonly code: number
  readonly message: string | undefined
}

const streamNotFound = 10059
const wrongInput = 2

/** What is refused for how things are is no mistake of who asks: it may work later. */
const isWrongInput = (error: unknown): boolean =>
  (error instanceof Invalid && !(error instanceof NotNow)) ||
  (error instanceof Refused && error.isInput === true)

/**
 * Returns the error's message. Problems of an operation's input name the flags. If a stream is
 * missing, it says what to do.
 */
const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof Invalid) return flagProblems(error.problems).join("; ")
  if (error instanceof EventNotStored)
    return error.reason === "no-stream"
      ? `${error.message}, or name the installation with --prefix and --events`
      : withFlags(error.message)
  if (error instanceof PublishError && error.reason === "no-stream")
    return `nothing was stored (${error.message}): \`petrel status\` says what is missing; or name another installation with --nats and --prefix`
  if (!(error instanceof BrokerError)) return error.message
  if (error.code === streamNotFound)
    return `${error.message}: run \`petrel init\` first, or name another installation with --nats and --prefix; if a restore was interrupted, run \`petrel restore\` again`
  if (error.message.includes("Permissions Violation"))
    return `${error.message}: the user of this login may not do this; nats.conf has a user for each program, and \`operator\` for people and all other commands`
  return isUnanswered(error)
    ? `the broker does not answer (${error.message}): a cluster that has lost a leader elects another within some 10 s, if more than half of its servers run; then run this again`
    : error.message
}

const isOutOfFiles = (defect: unknown): defect is Error =>
  defect instanceof Error && "code" in defect && /^(EMFILE|ENFILE)$/.test(String(defect.code))

const oneLine = (text: string): string => text.trim().replaceAll(/\s*\n\s*/g, " ")

/**
 * Returns how the process exits after a command. A failure is printed as one sentence, a defect
 * with its stack, unless the system refused to open another file: that may happen anywhere.
 *
 * @param signal the exit code if a signal interrupted the command.
 */
export const exitOf = (exit: Exit.Exit<unknown, unknown>, signal: number): ProcessExit => {
  if (Exit.isSuccess(exit)) return { code: 0, message: undefined }
  const { cause } = exit
  if (Cause.hasInterruptsOnly(cause)) return { code: signal, message: undefined }
  const died = cause.reasons.find(Cause.isDieReason)
  if (died !== undefined && isOutOfFiles(died.defect))
    return {
      code: 1,
      message: `no more files can be opened (${oneLine(died.defect.message)}): allow more with \`ulimit -n\`, or systemd's LimitNOFILE`
    }
  if (died !== undefined)
    return {
      code: 1,
      message: `this is a defect of Petrel; please report it with what follows\n${Cause.pretty(cause)}`
    }
  const error = cause.reasons.find(Cause.isFailReason)?.error
  if (error instanceof OutputClosed) return { code: 0, message: undefined }
  // An invalid invocation was reported when it was found. The bare program or group shows its help.
  if (CliError.isCliError(error) && error._tag === "ShowHelp")
    return { code: error.errors.length > 0 ? wrongInput : 0, message: undefined }
  return { code: isWrongInput(error) ? wrongInput : 1, message: oneLine(messageOf(error)) }
}
