import { Schema } from "effect"

/** A worker cannot start or continue. The message is the sentence that its user reads. */
export class WorkerRefused extends Schema.TaggedError<WorkerRefused>()("WorkerRefused", {
  message: Schema.String
}) {}
