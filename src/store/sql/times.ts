/** Stored instead of a date that is not set. */
export const NEVER = 0;

export const toDate = (time: number) => (time === NEVER ? undefined : new Date(time));
