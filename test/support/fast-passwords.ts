import { HASH_COST } from "../../src/accounts/passwords.ts";

/** Tests hash a thousand passwords, which would take a minute at the real cost. */
Object.assign(HASH_COST, { memoryKib: 8, passes: 1 });
