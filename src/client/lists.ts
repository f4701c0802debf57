import type { CallOptions } from "./calling.ts"

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
