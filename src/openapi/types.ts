/** The parts of OpenAPI 3.1 that are used here, so that a slip does not compile. */
export interface OpenApi {
  readonly openapi: "3.1.1";
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly security: readonly SecurityRequirement[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  };
  /** The answers, by their status, to whatever is not in `paths`: OpenAPI has no place for them. */
  readonly "x-otherwise": Readonly<Record<string, Response>>;
  /** The headers of every answer of all, which each of them need not repeat. */
  readonly "x-every-answer": { readonly description: string; readonly headers: Readonly<Record<string, Header>> };
}

export const METHODS = ["get", "post", "patch", "delete"] as const;
export type Method = (typeof METHODS)[number];
export type PathItem = Readonly<Partial<Record<Method, Operation>>>;
export type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

export interface Reference {
  readonly $ref: string;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly SecurityRequirement[];
  readonly parameters?: readonly Reference[];
  readonly requestBody?: RequestBody;
  readonly responses: Readonly<Record<string, Response | Reference>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly style?: "form";
  readonly explode?: false;
  readonly example?: unknown;
}

export interface RequestBody {
  readonly required: true;
  readonly description: string;
  readonly content: Content;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Content;
}

/** By the exact media type, with parameters that change the meaning (`ext`) and without one that does not (`charset`). */
export type Content = Readonly<Record<string, MediaType>>;

export interface MediaType {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
}

export interface Header {
  readonly description: string;
  readonly required: boolean;
  readonly schema: Schema;
}

export type SecurityScheme =
  | { readonly type: "http"; readonly scheme: "bearer"; readonly bearerFormat?: string; readonly description: string }
  | { readonly type: "apiKey"; readonly in: "cookie"; readonly name: string; readonly description: string }
  | { readonly type: "openIdConnect"; readonly openIdConnectUrl: string; readonly description: string };

type JsonType = "object" | "array" | "string" | "integer" | "boolean" | "null";

/** A schema by JSON Schema 2020-12. */
export interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: JsonType | readonly JsonType[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: "date-time";
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly minProperties?: number;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: true;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly contentMediaType?: string;
  readonly examples?: readonly unknown[];
}
