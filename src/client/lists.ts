import type { CallOptions, List, Page } from "./operation.ts"

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
