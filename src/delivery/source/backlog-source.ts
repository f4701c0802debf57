import type { BacklogMessage } from "../backlog/drain.ts"
import type { Drainer } from "../backlog/drainer.ts"
import type { StoredSourceOptions } from "./stored-source.ts"
import { StoredSource } from "./stored-source.ts"

interface BacklogSourceOptions extends StoredSourceOptions {
  readonly drainer: Pick<Drainer, "handBack">
}

/** The deliveries that are drained from the endpoints' backlogs. */
export class BacklogSource extends StoredSource<BacklogMessage> {
  readonly #drainer: BacklogSourceOptions["drainer"]

  constructor(options: BacklogSourceOptions) {
    super(options)
    this.#drainer = options.drainer
  }

  /** Its lane counts the bodies of drained deliveries from the start. */
  override becameSlow(): void {}

  /** The delivery is read again. */
  override defer(key: string, handle: BacklogMessage): void {
    this.#drainer.handBack(key, handle)
  }

  override giveBack(key: string, handle: BacklogMessage): void {
    this.#drainer.handBack(key, handle)
  }
}
