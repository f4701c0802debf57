import type { Writable } from "node:stream"
import { Context } from "effect"

/** The streams that a command writes to. */
export interface OutputStreams {
  readonly stdout: Writable
  readonly stderr: Writable
}

/** By default those of this process. Tests run several commands in one process. */
export const Output = Context.Reference<OutputStreams>("petrel/cli/Output", {
  defaultValue: () => process
})
