import { checkMs } from "./machine.ts"

/** What the client has to know of an operation (generated/operations.ts). */
export interface Described {
  readonly method: string
  /** With `{name}` for what varies. */
  readonly path: string
  readonly query?: ReadonlyArray<string>
  /** In lower case. */
  readonly headers?: ReadonlyArray<string>
  readonly hasBody?: true
  /** The field of a page that has its items, for a list with pages. */
  readonly list?: string
  /** True if it is answered with bytes that are no JSON of Petrel's. */
  readonly isBytes?: true
  /** True if no token is needed. */
  readonly isOpen?: true
  /** What to do over NATS, where it is not offered there. */
  readonly insteadOverNats?: string
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** How long one request may take, ms, up to 2^31 - 1. (Default: the client's) */
  readonly timeoutMs?: number | undefined
  /** For how long a request is repeated, ms; 0: never; Infinity: without end. (Default: the client's) */
  readonly retryForMs?: number | undefined
}

/**
 * Refuses times that no call can have.
 *
 * @throws TypeError that names the time.
 */
export const checkTimes = ({ retryForMs, timeoutMs }: CallOptions): void => {
  checkMs("timeoutMs", timeoutMs, 1)
  // No timer runs for as long: a request may be repeated without end.
  checkMs("retryForMs", retryForMs, 0, Number.POSITIVE_INFINITY)
}

/** Bytes that are answered as they are. */
export interface Bytes {
  readonly body: Uint8Array
  readonly contentType: string
}

/** A page of a list. */
export interface Page {
  readonly next?: string
}

/**
 * A list that is read page by page, as far as it is asked for. Nothing is requested before. Each
 * iteration begins anew.
 */
export interface List<Item, P extends Page> extends AsyncIterable<Item> {
  /** Returns one page. (Default: the first) */
  page(cursor?: string): Promise<P>
  /** Returns the pages one after the other. */
  pages(): AsyncIterable<P>
}

/** Makes a list of what returns a page. */
export const listOf = <Item, P extends Page>(
  field: string,
  page: (cursor: string | undefined, options: CallOptions) => Promise<P>,
  options: CallOptions
): List<Item, P> => {
  async function* pages(): AsyncGenerator<P> {
    for (let cursor: string | undefined; ; ) {
      const found = await page(cursor, options)
      yield found
      cursor = found.next
      if (cursor === undefined) return
    }
  }
  return {
    page: (cursor) => page(cursor, options),
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const one of pages())
        yield* new Map<string, unknown>(Object.entries(one)).get(field) as ReadonlyArray<Item>
    }
  }
}
