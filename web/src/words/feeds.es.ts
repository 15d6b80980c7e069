import type { FeedWords } from "./feeds.en.ts";

export const es: FeedWords = {
  reasons: {
    "duplicate-in-file": "Este feed ya aparece antes en el archivo.",
    "unsubscribed-in-file": "Suscripción cancelada en la app que creó el archivo.",
    "page-unavailable": "El servidor no puede consultar esta página.",
    "not-selected": "Sin seleccionar.",
  },
  line: (n: string) => `Línea ${n}`,
  brokenAt: (n: string) =>
    `El archivo está incompleto: una etiqueta o un comentario que empieza en la línea ${n} está cortado. No se importó nada; exporta de nuevo el archivo desde la app.`,
  textFileHint: "También sirve un archivo de texto con una URL de feed por línea.",
  select: (feed: string) => `Seleccionar ${feed}`,
  selectAll: "Seleccionar todo",
  selectNone: "No seleccionar nada",
  selected: (n: string, total: string) => `${n} de ${total} seleccionadas`,
  folder: "Carpeta",
  anyFolder: "Todas las carpetas",
  noFolder: "Sin carpeta",
  removed: {
    lead: "Lo que eliminaste hace poco en cualquier dispositivo.",
    empty: "No se ha eliminado nada hace poco.",
    restore: "Restaurar",
    restoreLabel: (name: string) => `Restaurar ${name}`,
    restoreAll: "Restaurar todo",
    on: (day: string) => `Eliminada el ${day}`,
    notRestored: (n: string) => `No se pudieron restaurar ${n}.`,
  },
  exports: {
    title: "¿Dónde está la exportación en mi app?",
    where: "Dónde está",
    none: "No tiene exportación. Añade sus pódcast con la URL de su feed.",
  },
  find: {
    button: "Buscar feeds",
    searching: "Buscando feeds…",
    found: (line: string) => `La línea ${line} es una página con estos feeds:`,
    none: (line: string) => `Línea ${line}: no se ha encontrado ningún feed en esta página.`,
    feedItself: (line: string) => `La línea ${line} es un feed.`,
    failed: (line: string, reason: string) => `Línea ${line}: ${reason}`,
    use: "Usar",
    useLabel: (name: string) => `Usar ${name}`,
  },
  servicePage: (service: string, line: string) =>
    `La línea ${line} es una página de ${service}, no un feed: las apps no pueden reproducirla. Busca el sitio web o el feed RSS del pódcast.`,
};
