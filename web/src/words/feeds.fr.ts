import type { FeedWords } from "./feeds.en.ts";

export const fr: FeedWords = {
  reasons: {
    "duplicate-in-file": "Ce flux figure déjà plus haut dans le fichier.",
    "unsubscribed-in-file": "Abonnement résilié dans l’appli qui a créé le fichier.",
    "page-unavailable": "Le serveur ne peut pas consulter cette page.",
    "not-selected": "Non sélectionné.",
  },
  line: (n: string) => `Ligne ${n}`,
  brokenAt: (n: string) =>
    `Le fichier est incomplet : une balise ou un commentaire qui commence à la ligne ${n} est coupé. Rien n’a été importé ; exportez de nouveau le fichier depuis l’appli.`,
  textFileHint: "Un fichier texte avec une URL de flux par ligne convient aussi.",
  select: (feed: string) => `Sélectionner ${feed}`,
  selectAll: "Tout sélectionner",
  selectNone: "Ne rien sélectionner",
  selected: (n: string, total: string) => `${n} sur ${total} sélectionnés`,
  folder: "Dossier",
  anyFolder: "Tous les dossiers",
  noFolder: "Aucun dossier",
  removed: {
    lead: "Ce que vous avez supprimé récemment, sur tous vos appareils.",
    empty: "Rien n’a été supprimé récemment.",
    restore: "Rétablir",
    restoreLabel: (name: string) => `Rétablir ${name}`,
    restoreAll: "Tout rétablir",
    on: (day: string) => `Supprimé le ${day}`,
    notRestored: (n: string) => `${n} n’ont pas pu être rétablis.`,
  },
  exports: {
    title: "Où se trouve l’export dans mon appli ?",
    where: "Emplacement",
    none: "Elle n’a pas d’export. Ajoutez ses podcasts par l’URL de leur flux.",
  },
  find: {
    button: "Chercher les flux",
    searching: "Recherche de flux…",
    found: (line: string) => `La ligne ${line} est une page avec ces flux :`,
    none: (line: string) => `Ligne ${line} : aucun flux trouvé sur cette page.`,
    feedItself: (line: string) => `La ligne ${line} est un flux.`,
    failed: (line: string, reason: string) => `Ligne ${line} : ${reason}`,
    use: "Utiliser",
    useLabel: (name: string) => `Utiliser ${name}`,
  },
  servicePage: (service: string, line: string) =>
    `La ligne ${line} est une page de ${service}, pas un flux : les applis ne peuvent pas la lire. Cherchez le site ou le flux RSS du podcast.`,
};
