import { createCurl } from "./curl.ts";
import { headerRef } from "./failures.ts";
import { type Html, html, markdown } from "./html.ts";
import { writeJson } from "./json.ts";
import {
  type Content,
  type Header,
  METHODS,
  type Method,
  type OpenApi,
  type Operation,
  type Parameter,
  type Reference,
  type Response,
  type Schema,
} from "./types.ts";

interface Place {
  readonly path: string;
  readonly method: Method;
  readonly operation: Operation;
}

/** The document as a page that needs nothing but a style sheet. Links are relative, so it can stand below any path. */
export function writePage(document: OpenApi): string {
  const places = placesOf(document);
  const page = new Page(document);
  const { info, tags } = document;
  const otherwise = Object.entries(document["x-otherwise"]);
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${info.title} API</title>
    <link rel="stylesheet" href="docs.css">
  </head>
  <body>
    <a class="skip" href="#content">Skip to the content</a>
    <header>
      <h1>${info.title} <span>API</span></h1>
      <p>${info.summary} Version ${info.version}. <a href="openapi.json">openapi.json</a> says the same to programs.</p>
    </header>
    <nav aria-label="Contents">
      <details>
        <summary>Contents</summary>
        <ul>
          <li><a href="#start">Start here</a></li>
          ${tags.map(
            ({ name }) => html`<li><a href="#${idOf(name)}">${name}</a>
            <ul>${placesWith(places, name).map(
              ({ operation, method }) =>
                html`<li><a href="#${operation.operationId}">${operation.summary} ${methodMark(method)}</a></li>`,
            )}</ul></li>`,
          )}
          <li><a href="#otherwise">Everything else</a></li>
          <li><a href="#errors">Errors</a></li>
          <li><a href="#documents">Documents</a></li>
        </ul>
      </details>
    </nav>
    <main id="content" tabindex="-1">
      <section aria-labelledby="start">
        <h2 id="start">Start here</h2>
        ${markdown(info.description)}
        ${page.howToTry()}
        ${page.credentials()}
      </section>
      ${tags.map(
        ({ name, description }) => html`<section aria-labelledby="${idOf(name)}">
        <h2 id="${idOf(name)}">${name}</h2>
        ${markdown(description)}
        ${placesWith(places, name).map((place) => page.operation(place))}
      </section>`,
      )}
      <section aria-labelledby="otherwise">
        <h2 id="otherwise">Everything else</h2>
        <p>What is answered to a path that is not on this page, to a method that a path does not offer, and to what is no request at all.</p>
        <ul class="answers">${otherwise.map(([status, response]) => page.answer(status, response))}</ul>
        <h3>Headers of every answer</h3>
        ${page.headers({ Vary: headerRef("Vary"), ...document["x-every-answer"].headers })}
      </section>
      <section aria-labelledby="errors">
        <h2 id="errors">Errors</h2>
        <p>Every error that there is. An answer has one, in a document of its own; on <code>/v1/operations</code> each operation can have one.</p>
        ${page.schemas(isError)}
      </section>
      <section aria-labelledby="documents">
        <h2 id="documents">Documents</h2>
        <p>What is sent and answered. A member is always there unless it says “may be left out”, and there are no others in an answer.</p>
        ${page.schemas((schema) => !isError(schema))}
      </section>
    </main>
  </body>
</html>
`.text;
}

function placesOf({ paths }: OpenApi): readonly Place[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ path, method, operation }];
    }),
  );
}

/** The object of one error is told by its title. */
const isError = ({ properties }: Schema) => properties?.["title"]?.const !== undefined;
const placesWith = (places: readonly Place[], tag: string) =>
  places.filter(({ operation }) => operation.tags[0] === tag);
const idOf = (name: string) => name.toLowerCase().replaceAll(/[^a-z]+/g, "-");
const methodMark = (method: Method) => html`<span class="method ${method}">${method.toUpperCase()}</span>`;
const nameOf = ({ $ref }: Reference) => $ref.slice($ref.lastIndexOf("/") + 1);
const code = (value: unknown) => html`<code>${typeof value === "string" ? value : JSON.stringify(value)}</code>`;
const block = (value: unknown) => html`<pre><code>${typeof value === "string" ? value : writeJson(value)}</code></pre>`;

function listOf(items: readonly Html[], between: string): Html {
  return html`${items.map((item, index) => (index === 0 ? item : html`${between}${item}`))}`;
}

class Page {
  readonly #document: OpenApi;
  readonly #curl: ReturnType<typeof createCurl>;

  constructor(document: OpenApi) {
    this.#document = document;
    this.#curl = createCurl(document);
  }

  howToTry(): Html {
    return html`<h3>To try the examples</h3>
        <p>They take what differs from the shell:</p>
        ${block(this.#curl.preparation)}`;
  }

  credentials(): Html {
    const schemes = Object.entries(this.#document.components.securitySchemes);
    if (schemes.length === 0) return html``;
    return html`<h3>Credentials</h3>
        <dl>${schemes.map(([name, scheme]) => {
          const how =
            scheme.type === "apiKey"
              ? `Cookie: ${scheme.name}=…`
              : scheme.type === "http"
                ? "Authorization: Bearer …"
                : scheme.openIdConnectUrl;
          return html`<dt id="credential-${name}">${credentialWords(name)}</dt><dd>${code(how)} ${markdown(scheme.description)}</dd>`;
        })}</dl>`;
  }

  operation({ path, method, operation }: Place): Html {
    const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
    const answers = Object.entries(responses).map(([status, response]) => {
      const errors = this.#errorsOf(response);
      const common = this.#commonErrors(status);
      return { status, response, errors, own: errors.filter((name) => !common.includes(name)) };
    });
    const own = answers.filter((answer) => answer.errors.length === 0 || answer.own.length > 0);
    const common = answers.filter((answer) => answer.errors.length > answer.own.length);
    return html`<article aria-labelledby="${operationId}">
          <h3 id="${operationId}"><a href="#${operationId}">${summary}</a></h3>
          <p class="target">${methodMark(method)} <code>${path}</code></p>
          ${description === undefined ? "" : markdown(description)}
          ${this.#who(operation)}
          ${
            parameters.length === 0
              ? ""
              : html`<h4>Parameters</h4>
          <dl>${parameters.map((reference) => this.#parameter(reference))}</dl>`
          }
          ${
            requestBody === undefined
              ? ""
              : html`<h4>Body</h4>
          ${markdown(requestBody.description)}
          ${this.#content(requestBody.content, false)}`
          }
          <h4>Example</h4>
          ${block(this.#curl.command(path, method, operation))}
          <h4>Answers</h4>
          <ul class="answers">${own.map((answer) => this.answer(answer.status, answer.response, answer.own))}</ul>
          <p class="quiet">And what any request may be answered: <a href="#otherwise">${common.map(({ status }) => status).join(", ")}</a>.</p>
        </article>`;
  }

  #who({ security }: Operation): Html {
    const alternatives = security ?? this.#document.security;
    if (security?.length === 0) return html`<p class="who">For anyone, without credentials.</p>`;
    if (alternatives.length === 0) return html``;
    const names = alternatives.flatMap((requirement) => Object.keys(requirement));
    const links = names.map(
      (name) => html`<a href="#credential-${name}">${credentialWords(name).replace(/^A/, "a").replace(/^T/, "t")}</a>`,
    );
    return html`<p class="who">Needs ${listOf(links, ", or ")}.</p>`;
  }

  #parameter(reference: Reference): Html {
    const { name, in: where, required, description, schema } = this.#resolve<Parameter>(reference, "parameters");
    const inPath = where === "path" ? "in the path" : required ? "" : "may be left out";
    return html`<dt><code>${name}</code> <span class="type">${this.#type(schema)}</span> <span class="quiet">${inPath}</span></dt>
            <dd>${markdown(description)}</dd>`;
  }

  #content(content: Content, isAnswer: boolean): Html {
    const types = Object.keys(content).map((type) => html`<code>${type}</code>`);
    const [first] = Object.values(content);
    if (first === undefined) return html``;
    const examples = Object.values(first.examples ?? {});
    const document = first.schema.$ref === undefined ? "" : html`: ${this.#type(first.schema)}`;
    return html`<p class="media">${listOf(types, isAnswer ? " or " : ", ")}${document}</p>
          ${isAnswer ? examples.map(({ summary, value }) => html`<details><summary>Example: ${summary}</summary>${block(value)}</details>`) : ""}`;
  }

  /** An answer, told by its errors if it has any. */
  answer(status: string, given: Response | Reference, errors = this.#errorsOf(given)): Html {
    const response = this.#responseOf(given);
    const { Vary: _, ...headers } = response.headers ?? {};
    const titles = errors.map((name) => html`<a href="#${name}">${this.#titleOf(name)}</a>`);
    const names = Object.keys(headers).map((name) => html`<code>${name}</code>`);
    const along = names.length === 0 ? "" : html` <span class="quiet">with ${listOf(names, ", ")}</span>`;
    const body =
      errors.length > 0
        ? html`<p>${listOf(titles, ", ")}${along}</p>`
        : html`${markdown(response.description)}
            ${response.content === undefined ? "" : this.#content(response.content, true)}`;
    return html`<li><span class="status s${status.charAt(0)}">${status}</span> <div>${body}
            ${errors.length > 0 ? "" : this.headers(headers)}</div></li>`;
  }

  /** What any request may be answered, which is said once, at the end. */
  #commonErrors(status: string): readonly string[] {
    const otherwise = this.#document["x-otherwise"][status];
    return otherwise === undefined ? [] : this.#errorsOf(otherwise);
  }

  /** The names of the errors of an answer; none for one that is no failure. */
  #errorsOf(response: Response | Reference): readonly string[] {
    const { content = {} } = this.#responseOf(response);
    const names = Object.values(content).flatMap(({ schema }) => {
      const items = schema.properties?.["errors"]?.items;
      return (items?.anyOf ?? [items]).map((one) => (one?.$ref === undefined ? "" : nameOf({ $ref: one.$ref })));
    });
    return [...new Set(names)].filter((name) => name !== "");
  }

  #titleOf(error: string): string {
    return String(this.#document.components.schemas[error]?.properties?.["title"]?.const ?? error);
  }

  headers(headers: Readonly<Record<string, Header | Reference>>): Html {
    if (Object.keys(headers).length === 0) return html``;
    return html`<dl class="headers">${Object.entries(headers).map(([name, given]) => {
      const { description, schema, required } = "$ref" in given ? this.#resolve<Header>(given, "headers") : given;
      const value = schema.const === undefined ? "" : code(schema.const);
      const often = required ? "" : html` <span class="quiet">sometimes</span>`;
      return html`<dt><code>${name}</code>${often}</dt><dd>${markdown(description)} ${value}</dd>`;
    })}</dl>`;
  }

  schemas(isWanted: (schema: Schema) => boolean): Html {
    const schemas = Object.entries(this.#document.components.schemas).filter(([, schema]) => isWanted(schema));
    return html`${schemas.map(([name, schema]) => this.#schema(name, schema))}`;
  }

  #schema(name: string, schema: Schema): Html {
    const { title, status } = schema.properties ?? {};
    const heading = isError(schema)
      ? html`<span class="status s${String(status?.const).charAt(0)}">${status?.const}</span> ${title?.const}`
      : name;
    const examples = schema.examples ?? [];
    return html`<article class="schema" aria-labelledby="${name}">
          <h3 id="${name}">${heading}</h3>
          ${schema.description === undefined ? "" : markdown(schema.description)}
          ${isError(schema) ? "" : this.#shape(schema)}
          ${
            examples.length === 0
              ? ""
              : isError(schema)
                ? html`<details><summary>Example</summary>${examples.map((value) => block(value))}</details>`
                : html`<p class="quiet">Example: ${listOf(examples.map(code), ", ")}</p>`
          }
        </article>`;
  }

  /** What a schema allows: its type, and its members if it has any. */
  #shape(schema: Schema): Html {
    const members = this.#members(schema);
    return members ?? html`<p class="type">${this.#type(schema)}</p>`;
  }

  #members({ properties, required = [] }: Schema): Html | undefined {
    if (properties === undefined) return undefined;
    return html`<ul class="members">${Object.entries(properties).map(([name, schema]) => {
      const inner = this.#members(schema) ?? (schema.items && this.#members(schema.items));
      const left = required.includes(name) ? "" : html` <span class="quiet">may be left out</span>`;
      const words = schema.description === undefined ? "" : markdown(schema.description);
      return html`<li><code>${name}</code> <span class="type">${this.#type(schema)}</span>${left} ${words} ${inner ?? ""}</li>`;
    })}</ul>`;
  }

  /** A schema in a few words. */
  #type(schema: Schema): Html {
    const { $ref, const: value, enum: values, type, items, anyOf, allOf } = schema;
    if ($ref !== undefined) return html`<a href="#${nameOf({ $ref })}">${nameOf({ $ref })}</a>`;
    if (value !== undefined) return code(value);
    if (values !== undefined) return listOf(values.map(code), " or ");
    if (anyOf !== undefined)
      return listOf(
        anyOf.map((one) => this.#onlyMember(one) ?? this.#type(one)),
        " or ",
      );
    if (allOf?.[0] !== undefined) return this.#type(allOf[0]);
    const names = listOf(
      [type ?? "any"].flat().map((name) => html`${name}`),
      " or ",
    );
    return html`${names}${items === undefined ? "" : html` of ${this.#type(items)}`}${boundsOf(schema)}`;
  }

  /** One of several objects is told by its only member. */
  #onlyMember({ properties = {} }: Schema): Html | undefined {
    const [[name, schema] = ["", undefined], ...more] = Object.entries(properties);
    if (schema === undefined || more.length > 0) return undefined;
    return html`object with <code>${name}</code> (${this.#type(schema)})`;
  }

  #responseOf(given: Response | Reference): Response {
    return "$ref" in given ? this.#resolve<Response>(given, "responses") : given;
  }

  #resolve<T>(reference: Reference, kind: "parameters" | "responses" | "headers"): T {
    return this.#document.components[kind][nameOf(reference)] as T;
  }
}

function boundsOf({ minimum, maximum, minLength, maxLength, maxItems, default: standard }: Schema): string {
  const grouped = (value: number) => value.toLocaleString("en-US");
  const words = [
    minimum !== undefined && maximum !== undefined ? `${grouped(minimum)} to ${grouped(maximum)}` : "",
    minimum !== undefined && maximum === undefined ? `from ${grouped(minimum)}` : "",
    maxLength === undefined ? "" : `${grouped(minLength ?? 0)} to ${grouped(maxLength)} characters`,
    maxItems === undefined ? "" : `at most ${grouped(maxItems)}`,
    standard === undefined ? "" : `${JSON.stringify(standard)} unless given`,
  ].filter((word) => word !== "");
  return words.length === 0 ? "" : `, ${words.join(", ")}`;
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  token: "A token",
  session: "A session",
  plainSession: "A session over http",
  identityProvider: "A JWT of the identity provider",
  metricsToken: "The token of metrics",
};

function credentialWords(name: string): string {
  return CREDENTIALS[name] ?? name;
}
