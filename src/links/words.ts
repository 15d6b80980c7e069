import type { Language } from "../util/languages.ts";

/** The texts of the page that a link shows. */
interface LinkWords {
  readonly heading: string;
  readonly lead: string;
  readonly addAll: string;
  readonly opml: string;
  readonly website: string;
  readonly feed: string;
  readonly websiteOf: (title: string) => string;
  readonly feedOf: (title: string) => string;
  readonly count: (count: number) => string;
  readonly more: string;
  readonly empty: string;
  readonly gone: string;
  readonly goneLead: string;
}

export const LINK_WORDS: Readonly<Record<Language, LinkWords>> = {
  en: {
    heading: "Podcasts",
    lead: "Someone shared these podcasts with you.",
    addAll: "Add to my list",
    opml: "OPML file for podcast apps",
    website: "Website",
    feed: "Feed",
    websiteOf: (title) => `Website of ${title}`,
    feedOf: (title) => `Feed of ${title}`,
    count: (count) => (count === 1 ? "1 podcast" : `${count.toLocaleString("en")} podcasts`),
    more: "The OPML file has more podcasts than this page.",
    empty: "There are no podcasts here at the moment.",
    gone: "This link does not exist",
    goneLead: "It was revoked, or its address is incomplete. Ask the person who sent it to you for a new one.",
  },
  de: {
    heading: "Podcasts",
    lead: "Jemand hat diese Podcasts mit dir geteilt.",
    addAll: "Zu meiner Liste hinzufügen",
    opml: "OPML-Datei für Podcast-Apps",
    website: "Website",
    feed: "Feed",
    websiteOf: (title) => `Website von ${title}`,
    feedOf: (title) => `Feed von ${title}`,
    count: (count) => (count === 1 ? "1 Podcast" : `${count.toLocaleString("de")} Podcasts`),
    more: "Die OPML-Datei enthält mehr Podcasts als diese Seite.",
    empty: "Hier sind zurzeit keine Podcasts.",
    gone: "Diesen Link gibt es nicht",
    goneLead:
      "Er wurde widerrufen, oder seine Adresse ist unvollständig. Bitte die Person, die ihn dir geschickt hat, um einen neuen.",
  },
  es: {
    heading: "Pódcasts",
    lead: "Alguien ha compartido estos pódcasts contigo.",
    addAll: "Añadir a mi lista",
    opml: "Archivo OPML para aplicaciones de pódcasts",
    website: "Sitio web",
    feed: "Feed",
    websiteOf: (title) => `Sitio web de ${title}`,
    feedOf: (title) => `Feed de ${title}`,
    count: (count) => (count === 1 ? "1 pódcast" : `${count.toLocaleString("es")} pódcasts`),
    more: "El archivo OPML tiene más pódcasts que esta página.",
    empty: "Ahora mismo no hay pódcasts aquí.",
    gone: "Este enlace no existe",
    goneLead: "Se revocó o su dirección está incompleta. Pide uno nuevo a la persona que te lo envió.",
  },
  fr: {
    heading: "Podcasts",
    lead: "Quelqu’un a partagé ces podcasts avec vous.",
    addAll: "Ajouter à ma liste",
    opml: "Fichier OPML pour les applications de podcasts",
    website: "Site web",
    feed: "Flux",
    websiteOf: (title) => `Site web de ${title}`,
    feedOf: (title) => `Flux de ${title}`,
    count: (count) => (count <= 1 ? `${count} podcast` : `${count.toLocaleString("fr")} podcasts`),
    more: "Le fichier OPML contient plus de podcasts que cette page.",
    empty: "Il n’y a aucun podcast ici pour le moment.",
    gone: "Ce lien n’existe pas",
    goneLead:
      "Il a été révoqué, ou son adresse est incomplète. Demandez-en un nouveau à la personne qui vous l’a envoyé.",
  },
  zh: {
    heading: "播客",
    lead: "有人与你分享了这些播客。",
    addAll: "添加到我的列表",
    opml: "供播客应用使用的 OPML 文件",
    website: "网站",
    feed: "订阅源",
    websiteOf: (title) => `${title} 的网站`,
    feedOf: (title) => `${title} 的订阅源`,
    count: (count) => `${count.toLocaleString("zh")} 个播客`,
    more: "OPML 文件中的播客比此页面更多。",
    empty: "目前这里没有播客。",
    gone: "此链接不存在",
    goneLead: "它已被撤销，或地址不完整。请向发送链接的人索取新链接。",
  },
};
