/*
 * The page of `/docs`. `node build/docs-page.ts` writes it to standard output: a console that runs
 * from a clone gets it so, and keeps no viewer in its memory.
 */
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiSwagger, OpenApi } from "effect/http-api"

const titled = HttpApi.make("petrel").annotate(OpenApi.Title, "Petrel")

/** How Effect's page gets the document that it holds. */
const held = 'spec: JSON.parse(document.getElementById("swagger-spec").textContent)'
/** How it gets the one that a console serves beside it, with the address of that console. */
const served = 'url: "openapi.json"'

/**
 * Returns the page: a viewer of the OpenAPI document that is served beside it.
 *
 * @throws Error if Effect's page is not as expected.
 */
export const docsPage = async (): Promise<string> => {
  const { dispose, handler } = HttpRouter.toWebHandler(
    HttpApiSwagger.layer(titled, { path: "/docs" }),
    { disableLogger: true }
  )
  try {
    const answer = await handler(new Request("http://localhost/docs"))
    const page = await answer.text()
    if (!page.includes(held)) throw new Error("the viewer does not say how it gets its document")
    return page.replace(held, served)
  } finally {
    await dispose()
  }
}

if (import.meta.main) process.stdout.write(await docsPage())
